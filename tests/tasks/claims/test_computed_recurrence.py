"""Layers with known gradients and known chains of operations; no time is asserted."""

import pytest
import torch

from bench.cli.registered import load_registry
from tasks.claims import computed_recurrence
from tasks.claims.computed_recurrence import DISTANCES, FEW, MANY, _cells, _growth, _longest_chain

load_registry(())


SPENT = {"lstm": 3.0, "gru": 2.0, "attention": 0.5}


def values(found):
    return {(one.metric, one.x): one.value for one in found}


def test_gradients_of_a_layer_that_halves_at_every_step_are_halved():
    def layer(x):
        far = torch.arange(x.shape[1])
        return (0.5 ** (far[:, None] - far).abs().double()) @ x

    norms = computed_recurrence._norms(layer)
    for far in DISTANCES:
        assert norms[far] / norms[2] == pytest.approx(0.5 ** (far - 2))


def test_shares_of_gradients_begin_at_one_and_the_last_one_is_bounded():
    found = values(computed_recurrence.gradient_by_distance())
    for name in ("recurrent", "attention"):
        assert found[f"{name}_gradient_share", 2.0] == 1
        last = found[f"{name}_gradient_share", 64.0]
        assert found[f"{name}_gradient_share_at_64", None] == last


def test_the_longest_chain_of_a_graph_is_counted():
    x = torch.zeros(2, requires_grad=True)
    long = x.sin().cos().tanh()
    # sin, cos, tanh, the longer side of the sum, and the leaf
    assert _longest_chain(long + x.exp()) == 5


def test_a_recurrent_layer_waits_for_every_token_and_attention_for_none():
    assert _growth(_cells()) == pytest.approx(MANY / FEW, rel=0.1)
    assert _growth(lambda x: (x @ x.transpose(1, 2)).requires_grad_().softmax(-1)) == 1


def test_every_length_has_a_ratio_and_those_beyond_the_width_have_a_name_of_their_own(monkeypatch):
    monkeypatch.setattr(computed_recurrence, "TIMED_WIDTH", 8)
    monkeypatch.setattr(computed_recurrence, "LENGTHS", (4, 8, 16))
    monkeypatch.setattr(computed_recurrence, "_seconds", lambda layers, length: SPENT)
    found = values(computed_recurrence.time_of_layers())
    assert found["attention_steps_ratio", None] == 1
    for name, ratio in (("lstm", 6), ("gru", 4)):
        assert {x for metric, x in found if metric == f"{name}_time_ratio"} == {4, 8}
        assert found[f"{name}_time_ratio", 4.0] == ratio
        assert found[f"{name}_time_ratio_beyond_the_width", 16.0] == ratio


def test_both_passes_are_timed_in_turns():
    passes = []

    def layer(name):
        def run(x):
            passes.append(name)
            y = x * 2
            y.register_hook(lambda _: passes.append(f"{name} back"))
            return y

        return run

    spent = computed_recurrence._seconds({name: layer(name) for name in "ab"}, 3)
    assert set(spent) == {"a", "b"}
    assert min(spent.values()) > 0
    assert passes == ["a", "a back", "b", "b back"] * 8
