"""The check `cost`: exponents of time and memory, declared too low and too high."""

import pytest

from bench.conformance import as_text, certify
from variants.mechanisms.linear_attention import LinearAttention
from variants.scores.scaled_dot import ScaledDotScore


def cubic(self, call, features):
    """A number for each query and each pair of keys."""
    found = ScaledDotScore.energy(self, call, features)
    return (found.unsqueeze(-1) + found.unsqueeze(-2).mul(0.0)).mean(-1)


def test_memory_that_grows_with_the_cube_and_says_nothing(plant):
    plant.score(cubic)
    failed = plant.red("planted", "cost")["cost"]
    assert "declared 2" in failed
    assert failed.endswith("at lengths [64, 128, 256])"), "a cube of 1024 would not fit"


def test_memory_that_grows_with_the_cube_though_time_alone_is_declared_so(plant, monkeypatch):
    monkeypatch.setattr("bench.conformance.checks_cost.LENGTHS", (64, 128, 256))

    class Honest(ScaledDotScore):
        gives = frozenset({"key_local"})
        time_exponent = 3.0
        energy = cubic

    plant("score", Honest)
    sentence = plant.red("planted", "cost")["cost"]
    assert "peak bytes" in sentence
    Honest.memory_exponent = 3.0
    assert certify("planted", checks=["cost"]).green()


def test_a_linear_mechanism_that_declares_nothing_is_green_and_is_told(plant):
    class Modest(LinearAttention):
        time_exponent = 2.0
        memory_exponent = 2.0

    plant("mechanism", Modest)
    found = certify("planted", checks=["cost"])
    assert found.green()
    assert "the power 1.00 without weights, and the declared 2 is too high" in found.told["cost"]
    assert "planted: cost passed, and says: operations grow" in as_text([found])


def test_a_mechanism_that_keeps_more_than_it_declares(plant):
    class Keeping(LinearAttention):
        def mix(self, call, carried, want_weights):
            found = super().mix(call, carried, want_weights)
            pairs = call.query @ call.query.transpose(-1, -2)
            return found._replace(output=found.output + 0 * pairs.sum(-1, keepdim=True))

    plant("mechanism", Keeping)
    failed = plant.red("planted", "cost")["cost"]
    assert "operations where no weights are wanted grow" in failed
    assert "declared 1" in failed


@pytest.mark.parametrize(
    "selector",
    [
        "luong_local_m",
        "luong_local_m[window=64]",  # whose windows are copied out from 3096 keys on
        "luong_local_m[normalizer=sparsemax]",  # reads all keys behind a mask
        "scaled_dot[position=distance_bias]",
        "raffel_monotonic[computation=pairwise]",
        "linear_attention",
        "max_pooling",
    ],
)
def test_declarations_are_true_on_both_sides(selector, monkeypatch):
    if "pairwise" in selector:
        monkeypatch.setattr("bench.conformance.checks_cost.LENGTHS", (64, 128, 256))
    found = certify(selector, checks=["cost"])
    assert found.green(), as_text([found])
    assert not found.told


def test_code_for_causal_sequences_alone_that_grows_faster_than_declared(plant):
    class SlowerWhenCausal(LinearAttention):
        def mix(self, call, carried, want_weights):
            found = super().mix(call, carried, want_weights)
            if not call.causal:
                return found
            pairs = call.query @ call.query.transpose(-1, -2)
            return found._replace(output=found.output + 0 * pairs.sum(-1, keepdim=True))

    plant("mechanism", SlowerWhenCausal)
    assert plant.red("planted", "cost")["cost"].startswith("causal")
