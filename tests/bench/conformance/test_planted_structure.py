"""Planted defects of conduct: hidden state, randomness, purity, streaming, cost, options."""

import re
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
import torch
from torch.nn import functional

from bench.api import registry
from bench.api.call import MixResult
from bench.api.chain import Chain
from bench.api.config import Config, IntRange
from bench.api.normalizer import Normalized
from bench.api.position import Position
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.source import leaf
from bench.api.variant import Variant
from bench.conformance import certify, checks_structure
from bench.conformance.certificate import CheckFailed
from variants.history.tu_coverage import TuCoverage, TuCoverageConfig
from variants.normalizers.masked_softmax import masked_softmax
from variants.normalizers.raffel_monotonic import RaffelMonotonicConfig, RaffelMonotonicNormalizer
from variants.normalizers.softmax import SoftmaxConfig, SoftmaxNormalizer
from variants.scores.additive import AdditiveScore
from variants.scores.scaled_dot import ScaledDotScore

HERE = r"\(tests/bench/conformance/test_planted_structure\.py:\d+\)"
"""Where a crash happened, as a certificate says it."""


def test_state_on_self(plant):
    def normalize(self, energy, allowed, state, call):
        energy = energy + getattr(self, "last", 0.0)
        weights = masked_softmax(energy, allowed)
        self.last = float(weights.detach().mean()) * (call.key_position % 2)[: energy.shape[-1]]
        return Normalized(weights)

    plant.normalizer(normalize)
    assert "two answers" in plant.red("planted", "batch_invariance")["batch_invariance"]


def test_randomness_in_evaluation(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(masked_softmax(energy + 1e-3 * torch.rand_like(energy), allowed))

    plant.normalizer(normalize)
    assert "global generator" in plant.red("planted", "determinism")["determinism"]


def test_other_weights_where_networks_are_scored(plant):
    def normalize(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        return Normalized(weights if self.training else weights.flip(-1))

    plant.normalizer(normalize)
    said = plant.red("planted", "determinism")["determinism"]
    assert "differs after `eval()`" in said


def test_a_part_that_sets_the_seed_when_it_is_built(monkeypatch):
    init = AdditiveScore.__init__

    def broken(self, *args, **options):
        init(self, *args, **options)
        torch.manual_seed(0)

    monkeypatch.setattr(AdditiveScore, "__init__", broken)
    assert "sets the seed" in certify("additive", checks=["start"]).failed["start"]


def test_randomness_that_is_addressed_by_the_call_and_not_by_the_query(plant):
    def normalize(self, energy, allowed, state, call):
        if call.read == "train":
            rows, heads, length, keys = energy.shape
            draws = call.drawing.gumbel("planted", rows, heads, torch.arange(length), keys)
            energy = energy + draws.double()
        return Normalized(masked_softmax(energy, allowed))

    plant.normalizer(normalize, reads=("train", "expected"))
    assert "read=train" in plant.red("planted", "splits")["splits"]


def test_a_read_that_is_not_declared(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(masked_softmax(energy * (2 if call.read == "hard" else 1), allowed))

    plant.normalizer(normalize)
    assert "does not name `hard`" in plant.red("planted", "determinism")["determinism"]


def test_memory_changed_in_place(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        call.memory.source.value.detach().mul_(1.0)
        return found

    plant.score(energy)
    assert "changed in place" in plant.red("planted", "memory_pure")["memory_pure"]


def test_encoder_outputs_changed_by_prepare(plant):
    class Planted(ScaledDotScore):
        def prepare(self, source):
            source.key.detach().add_(1.0)
            return {}

    plant("score", Planted)
    assert "changed" in plant.red("planted", "memory_pure")["memory_pure"]


@pytest.mark.usefixtures("unchecked_annotations")  # `bench verify` has no annotations to help it
def test_energies_of_another_shape(plant):
    """The sentence names the score, and not what reads its energies next."""
    plant.score(lambda self, call, features: ScaledDotScore.energy(self, call, features).mT)
    said = plant.red("planted", "shapes")["shapes"]
    assert said.startswith(
        "cross with raw heads: read=train: Planted.energy returns shape (3, 1, 7"
    )
    assert said.endswith("not (3, 1, 11, 7) (rows, heads, queries, keys)")
    plant.score(lambda self, call, features: call.query.sum(-1))
    assert "returns shape (3, 1, 11), not" in plant.red("planted", "shapes")["shapes"]


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize("shape", [(1, 1, 0, 0), (3, 1, 0, 0), (1, 1, 1, 0), (2, 1, 0, 0), (0, 0)])
def test_one_row_and_one_head_of_a_position_may_stand_for_all(plant, shape):
    def energy(self, call):
        ends = (call.query.shape[2], call.memory.num_keys)
        shown = (*shape[:-2], *(n or end for n, end in zip(shape[-2:], ends, strict=True)))
        return call.query.new_zeros(shown)

    plant("position", type("Planted", (Position,), {"changes_energy": True, "energy": energy}))
    found = certify("scaled_dot[position=planted]", checks=["shapes"])
    assert found.green() == (shape in ((1, 1, 0, 0), (3, 1, 0, 0)))
    assert found.green() or "Planted.energy returns shape" in found.failed["shapes"]


def test_a_state_changed_in_place(plant):
    class Corrupted(TuCoverage):
        def update(self, call, weights, state):
            leaf(state, "coverage").detach().add_(0.0)
            return super().update(call, weights, state)

    plant("history", Corrupted, TuCoverageConfig)
    assert "given state" in plant.red("additive[history=planted]", "memory_pure")["memory_pure"]


def test_streaming_with_another_threshold(plant):
    class Eager(RaffelMonotonicNormalizer):
        def stop_probability(self, energy):
            return super().stop_probability(energy) + 0.2

        def normalize(self, energy, allowed, state, call):
            keep, self_class = type(self).stop_probability, type(self)
            self_class.stop_probability = RaffelMonotonicNormalizer.stop_probability
            try:
                return super().normalize(energy, allowed, state, call)
            finally:
                self_class.stop_probability = keep

    plant("normalizer", Eager, RaffelMonotonicConfig)
    found = certify("additive[normalizer=planted]", checks=("oracle", "stream"))
    assert found.passed == ("oracle",)
    assert "differs from hard decoding" in found.failed["stream"]


def test_streaming_that_never_stops_shows_nothing(plant):
    class Never(RaffelMonotonicNormalizer):
        def stop_probability(self, energy):
            return super().stop_probability(energy) * 0.4

    plant("normalizer", Never, RaffelMonotonicConfig)
    assert "show nothing" in plant.red("additive[normalizer=planted]", "stream")["stream"]


class Fused(Variant):
    """Fused attention."""

    needs = frozenset({"equal_width"})

    def __init__(self, config, dims, impl="auto"):
        super().__init__(dims, impl)

    def mix(self, call, carried, want_weights):
        source = call.memory.source
        output = functional.scaled_dot_product_attention(
            call.query, source.key, source.value, is_causal=call.causal
        )
        return MixResult(output, None, carried, {})

    oracle = Chain.oracle


class Pretender(Fused):
    """Quadratic work under a linear label."""

    time_exponent = 1.0


def test_quadratic_work_under_a_linear_label(plant):
    plant("mechanism", Pretender)
    assert "declared 1" in plant.red("planted", "cost")["cost"]


def test_cubic_memory(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return (found.unsqueeze(-1) + found.unsqueeze(-2).mul(0.0)).mean(-1)

    plant.score(energy)
    assert "to the power" in plant.red("planted", "cost")["cost"]


@dataclass(frozen=True, kw_only=True)
class Outside(Config):
    """A default outside of its own range."""

    width: Annotated[int, IntRange(8, 16)] = 4


def test_a_default_outside_of_its_search_range(plant):
    plant("score", ScaledDotScore, Outside)
    assert "outside of its search range" in plant.red("planted", "config")["config"]


@pytest.mark.parametrize(
    ("read_as", "sentence"),
    [
        ("additive", "an unknown option is not refused"),
        ("additive[width=wide]", "an unknown option is refused by: additive: width must"),
    ],
)
def test_an_unknown_option_that_passes_or_is_refused_for_another_reason(
    monkeypatch, read_as, sentence
):
    monkeypatch.setattr(
        checks_structure,
        "resolve",
        lambda asked: resolve(read_as if "no_such_option" in str(asked) else asked),
    )
    with pytest.raises(CheckFailed, match=sentence):
        checks_structure.config(resolve("additive"))


def test_weights_that_nobody_wanted_or_of_another_shape(plant):
    def normalize(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        return Normalized(weights, terms={"entropy": weights.sum(-1)})

    plant.normalizer(normalize)
    assert "entropy" in plant.red("planted", "shapes")["shapes"]


def test_a_variant_that_stands_nowhere(plant):
    class Nowhere(ScaledDotScore):
        unsupported = dict.fromkeys(("cross", "causal", "self", "pool"), "stands nowhere.")

    plant("score", Nowhere)
    for impl in ("auto", "eager"):
        found = certify("planted", impl=impl)
        assert "stands nowhere" in found.failed["runs_somewhere"]
        assert found.verdict == "red"


def test_code_that_breaks_is_red_and_no_refusal(plant):
    registered = registry.find("mechanism", "linear_attention")

    class Broken(registered.target):
        def __init__(self, config, dims, impl="auto"):
            if impl == "eager":
                raise RuntimeError("not today")
            super().__init__(config, dims, impl)

    plant("mechanism", Broken, registered.config)
    assert certify("planted", checks=["runs_somewhere"]).verdict == "green"
    found = certify("planted", impl="eager")
    assert "RuntimeError: not today" in found.failed["runs_somewhere"]
    assert found.verdict == "red"


def test_a_crash_is_a_failure_with_a_sentence(plant):
    def normalize(self, energy, allowed, state, call):
        raise ZeroDivisionError("no such thing")

    plant.normalizer(normalize)
    assert "ZeroDivisionError: no such thing" in plant.red("planted", "oracle")["oracle"]


def test_a_check_that_is_refused_is_not_green(plant):
    class Half(SoftmaxNormalizer):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            if dims.regime == "causal":
                raise RuntimeError("not today")

    plant("normalizer", Half, SoftmaxConfig)
    found = certify("planted", checks=("causality", "oracle"))
    assert found.passed == ("oracle",)
    assert found.skipped == found.missing()
    assert set(found.skipped) == {"causality"}
    assert re.fullmatch(rf"RuntimeError: not today {HERE}", found.skipped["causality"])
    assert not found.green()


def test_a_place_that_breaks_while_it_is_built_is_not_left_out_in_silence(plant):
    class Half(SoftmaxNormalizer):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            if dims.regime == "self":
                raise RuntimeError("not today")

    plant("normalizer", Half, SoftmaxConfig)
    failed = plant.red("planted")
    assert set(failed) == {"runs_somewhere"}
    assert re.fullmatch(rf"self: RuntimeError: not today {HERE}", failed["runs_somewhere"])


@dataclass(frozen=True, kw_only=True)
class SizedConfig(SoftmaxConfig):
    size: Annotated[int, IntRange(2, 64)] = 32


@pytest.mark.parametrize("regime", ["causal", "pool"])
@pytest.mark.parametrize("broken", ["small", "own"])
def test_what_stands_in_one_place_is_asked_there_with_its_own_options(plant, regime, broken):
    class Sized(SoftmaxNormalizer):
        unsupported = dict.fromkeys({"cross", "causal", "self", "pool"} - {regime}, "no place.")

        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.wrong = (config.size == 2) == (broken == "small")
            self.softmax_temperature = None  # fused code would not ask `normalize`

        def normalize(self, energy, allowed, state, call):
            found = super().normalize(energy, allowed, state, call)
            return Normalized(found.weights * 0.5) if self.wrong else found

    plant("normalizer", Sized, SizedConfig)
    for check in ("oracle", "long"):
        sentence = plant.red("planted", check)[check]
        assert ("smallest options" in sentence) == (broken == "small")
        assert "the loops" in sentence


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"task": "transductoin"}, "the default task 'transductoin', but no task named"),
        ({"task": "transduction[rul=copy]"}, "but no option of transduction named 'rul'"),
        ({"task": "recall", "backbone": "nowhere"}, "the default backbone 'nowhere', but no"),
    ],
)
def test_a_default_task_that_is_not_there(plant, monkeypatch, declared, sentence):
    plant("score", ScaledDotScore)
    entries = registry._ENTRIES["score"]
    declares = replace(entries["planted"], default_task=DefaultTask(**declared))
    monkeypatch.setitem(entries, "planted", declares)
    found = plant.red("planted", "config")["config"]
    assert found.startswith("options: planted declares the default ")
    assert sentence in found


def test_code_for_scoring_alone(plant):
    """Networks are scored after `eval()` and without gradients, both at once."""

    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return found if self.training or torch.is_grad_enabled() else 3 * found

    plant.score(energy)
    said = plant.red("planted", "determinism")["determinism"]
    assert "differs after `eval()`, which is how networks are scored, without gradients" in said


@pytest.mark.parametrize("whole", [True, False])
def test_words_changed_in_place(plant, whole):
    """A whole call without gradients is not answered by the code of single queries."""

    def energy(self, call, features):
        plain = call.query.shape[2] > 1 and not torch.is_grad_enabled()
        if plain == whole:
            leaf(call.extras, "word").mul_(1.0)
        return ScaledDotScore.energy(self, call, features)

    plant.score(energy)
    said = plant.red("planted", "memory_pure")["memory_pure"]
    assert "the words was changed in place" in said
    assert ("all queries without gradients" in said) == whole
