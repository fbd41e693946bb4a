import pytest
import torch

import variants
from bench.api import registry
from bench.api.errors import InvalidConfig


def test_weights_do_not_depend_on_the_content(component, ask, draw):
    score = component("score", "random")
    one, other = draw(seed=1), draw(seed=2)
    energies = [score.energy(ask(d.query, d.source), None) for d in (one, other)]
    assert torch.equal(*energies)


def test_every_row_of_every_batch_gets_the_same_draws(component, ask, draw):
    score = component("score", "random")
    wide = score.energy(ask(*draw(3, 2, 4, 6)[:2]), None)
    narrow = score.energy(ask(*draw(1, 2, 4, 5)[:2]), None)
    assert torch.equal(wide[0], wide[2])
    assert torch.equal(wide[:1, :, :, :5], narrow)


def test_heads_and_queries_get_different_draws(component, ask, draw):
    energy = component("score", "random").energy(ask(*draw(1, 2, 4, 6)[:2]), None)[0]
    assert not torch.equal(energy[0], energy[1])
    assert not torch.equal(energy[:, 0], energy[:, 1])


def test_another_seed_is_another_control(component, ask, draw):
    call = ask(*draw()[:2])
    zero = component("score", "random").energy(call, None)
    one = component("score", "random[seed=1]").energy(call, None)
    assert not torch.equal(zero, one)


def test_the_draws_are_frozen(component, ask, draw):
    energy = component("score", "random").energy(ask(*draw(1, 1, 1, 3)[:2]), None)
    expected = [-1.248388, -0.809461, 0.439310]
    assert energy.flatten().tolist() == pytest.approx(expected, abs=1e-6)


def test_a_negative_seed_is_an_error():
    with pytest.raises(InvalidConfig, match="seed must be at least 0, got -1"):
        variants.build("random[seed=-1]", dim=4, heads=2)


def test_it_is_a_control():
    assert registry.find("score", "random").control
