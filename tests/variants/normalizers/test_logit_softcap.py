import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("cap", [1.0, 30.0])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, cap):
    equals_oracle(f"logit_softcap[cap={cap}]", regime)


def test_a_cap_far_above_the_energies_is_the_softmax(row):
    energies = [3.0, -1.0, 0.5, 2.0]
    assert row("logit_softcap[cap=1e7]", energies) == pytest.approx(row("softmax", energies))


@pytest.mark.parametrize("cap", [1.0, 4.0])
def test_no_two_weights_are_further_apart_than_the_cap_allows(row, cap):
    weights = row(f"logit_softcap[cap={cap}]", [1e4, 0.0, -1e4])
    ratio = torch.tensor(weights[0] / weights[2]).log()
    assert ratio == pytest.approx(2 * cap, rel=1e-6)


def test_gradients_shrink_and_never_turn(aligned, energies):
    energy = energies(1, 1, 1, 5)
    capped = 2.0 * torch.tanh(energy / 2.0)
    (slope,) = torch.autograd.grad(capped.sum(), energy)
    assert ((slope > 0) & (slope <= 1)).all()
    found = aligned("logit_softcap[cap=2.0]", energy)
    torch.testing.assert_close(found, torch.softmax(capped, -1), rtol=0, atol=1e-12)


def test_keys_are_hidden_after_the_cap(row):
    """A capped minus infinity would be minus the cap, which is visible."""
    weights = row("logit_softcap[cap=1.0]", [0.3, 0.2, 0.1], [True, False, True])
    assert weights[1] == 0
    assert sum(weights) == pytest.approx(1)


def test_fused_attention_would_forget_the_cap_and_is_refused():
    with pytest.raises(Refused, match="impl=sdpa needs"):
        variants.build("logit_softcap", dim=8, heads=2, impl="sdpa")


def test_a_cap_that_is_not_positive_is_refused():
    with pytest.raises(InvalidConfig, match="cap must be above 0, got 0"):
        variants.build("logit_softcap[cap=0]", dim=8, heads=2)
