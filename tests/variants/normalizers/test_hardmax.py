import pytest
import torch

from bench.api.errors import InvalidConfig

UNTAUGHT = "hardmax[gradient=none]"


def test_the_first_of_equal_keys_gets_all_the_weight(row):
    assert row("hardmax", [1, 3, 2, 3]) == [0, 1, 0, 0]
    assert row("hardmax", [1, 3, 2, 3], [True, False, True, True]) == [0, 0, 0, 1]
    assert row("hardmax", [-5, -4], [True, False]) == [1, 0]


def test_it_is_softmax_at_temperature_zero(aligned, energies):
    energy = energies(2, 2, 3, 5).detach()
    cold = aligned("softmax[temperature=1e-4]", energy)
    torch.testing.assert_close(aligned("hardmax", energy), cold, rtol=0, atol=1e-12)


def test_the_choice_itself_has_no_gradient(aligned, energies):
    for read in ("train", "expected", "hard"):
        assert not aligned(UNTAUGHT, energies(2, 2, 3, 5), read=read).requires_grad
    for read in ("expected", "hard"):
        assert not aligned("hardmax", energies(2, 2, 3, 5), read=read).requires_grad


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_straight_through_lends_the_gradient_of_softmax_in_training_alone(
    aligned, energies, temperature
):
    selector = f"hardmax[temperature={temperature}]"
    energy, copy, pull = energies(2, 2, 3, 5), energies(2, 2, 3, 5), energies(2, 2, 3, 5, seed=1)
    weights = aligned(selector, energy, read="train")
    assert torch.equal(weights, aligned(UNTAUGHT, energy))
    (weights * pull).sum().backward()
    (aligned(f"softmax[temperature={temperature}]", copy) * pull).sum().backward()
    torch.testing.assert_close(energy.grad, copy.grad, rtol=0, atol=1e-12)
    assert energy.grad.abs().max() > 1e-2
    assert not aligned(selector, energies(2, 2, 3, 5)).requires_grad


def test_temperatures_must_be_positive(beneath):
    with pytest.raises(InvalidConfig, match="hardmax: temperature must be above 0, got -1"):
        beneath("hardmax[temperature=-1]")
