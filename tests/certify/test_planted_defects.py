"""Every check has a defect that only it is there to find; the suite that misses one is no suite."""

from dataclasses import dataclass, replace
from typing import Annotated

import pytest
import torch
from torch.nn import functional

from bench.api.call import MixResult
from bench.api.chain import Chain
from bench.api.component import Aligned
from bench.api.config import Config, IntRange
from bench.api.source import Memory, leaf
from bench.api.variant import Variant
from bench.certify import certify
from variants._math import masked_softmax, oracle_softmax
from variants.alignments.raffel_monotonic import RaffelMonotonicAlignment, RaffelMonotonicConfig
from variants.alignments.softmax import SoftmaxAlignment
from variants.feedback.tu_coverage import TuCoverage, TuCoverageConfig
from variants.patterns.full import FullPattern
from variants.patterns.luong_local_p import LocalPredictedConfig, LocalPredictedPattern
from variants.positions.shaw_rpr import ShawConfig, ShawPosition
from variants.scores.scaled_dot import ScaledDotScore


def alignment(align, **facts):
    """A softmax whose vectorized code is replaced."""
    return type("Planted", (SoftmaxAlignment,), {"align": align, **facts})


def score(energy, **facts):
    return type("Planted", (ScaledDotScore,), {"energy": energy, "dot_form": _no_form, **facts})


def _no_form(self, call):
    return None


LOCAL = frozenset({"key_local"})


def red(selector, *checks):
    """Certify, and return what failed."""
    found = certify(selector, checks=checks or None)
    assert not found.green(), "the defect was not found"
    return found.failed


def test_the_plain_chain_of_these_tests_is_green(plant):
    plant("alignment", "sound", alignment(SoftmaxAlignment.align))
    assert certify("sound").green()


def test_future_that_leaks_once_a_padding_mask_is_passed(plant):
    def align(self, energy, allowed, state, call):
        mask = call.memory.source.mask
        return Aligned(masked_softmax(energy, allowed if mask is None else mask[:, None, None]))

    plant("alignment", "planted", alignment(align))
    failed = red("planted")
    assert "with padded keys" in failed["causality"]
    assert "depends on the" in failed["causality"]


def test_future_that_leaks_without_any_gradient(plant):
    def align(self, energy, allowed, state, call):
        best = energy.detach().argmax(-1, keepdim=True)
        nudge = 0.1 * (call.key_position == best)
        return Aligned(masked_softmax(energy + nudge * energy.detach().amax(-1, True), allowed))

    plant("alignment", "planted", alignment(align))
    assert "changing keys after" in red("planted", "causality")["causality"]


def test_queries_that_do_not_see_their_own_place(plant):
    def align(self, energy, allowed, state, call):
        if call.causal:
            allowed = allowed & (call.key_position < call.position[:, None])
        return Aligned(masked_softmax(energy, allowed))

    plant("alignment", "planted", alignment(align))
    assert "does not see its own value" in red("planted", "causality")["causality"]


def test_causal_mask_aligned_to_the_top_left_where_queries_are_fewer_than_keys(plant):
    def align(self, energy, allowed, state, call):
        if call.causal:
            queries, keys = energy.shape[2:]
            allowed = torch.ones(queries, keys, dtype=torch.bool).tril()[None, None]
            if call.memory.source.mask is not None:
                allowed = allowed & call.memory.source.mask[:, None, None]
        return Aligned(masked_softmax(energy, allowed))

    plant("alignment", "planted", alignment(align))
    failed = red("planted")
    assert "does not see its own value" in failed["causality"]
    assert "differ from all at once" in failed["splits"]


class TopLeft(Variant):
    """Fused attention with the flag that aligns top-left."""

    needs = frozenset({"equal_width"})
    cannot = {"padding": "takes no mask"}

    def __init__(self, config, dims, impl="auto"):
        super().__init__(dims, impl)

    def mix(self, call, carried, want_weights):
        source = call.memory.source
        output = functional.scaled_dot_product_attention(
            call.query, source.key, source.value, is_causal=call.causal
        )
        return MixResult(output, None, carried, {})

    oracle = Chain.oracle


def test_fused_kernel_with_is_causal_and_a_cache(plant):
    plant("mechanism", "planted", TopLeft)
    assert "differ from all at once" in red("planted", "splits")["splits"]


def test_state_on_self(plant):
    def align(self, energy, allowed, state, call):
        energy = energy + getattr(self, "last", 0.0)
        weights = masked_softmax(energy, allowed)
        self.last = float(weights.detach().mean()) * (call.key_position % 2)[: energy.shape[-1]]
        return Aligned(weights)

    plant("alignment", "planted", alignment(align))
    assert "two answers" in red("planted", "batch_invariance")["batch_invariance"]


def test_rows_that_see_each_other(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return found * found.detach().abs().mean()

    plant("score", "planted", score(energy, gives=LOCAL))
    failed = red("planted", "padding_invariance", "oracle")
    assert set(failed) == {"padding_invariance", "oracle"}


@pytest.mark.parametrize("read", ["train", "expected", "hard"])
def test_a_row_without_keys_wrong_in_one_read_mode(plant, read):
    def align(self, energy, allowed, state, call):
        if call.read != read:
            return Aligned(masked_softmax(energy, allowed))
        fill = torch.finfo(energy.dtype).min
        return Aligned(torch.softmax(torch.where(allowed, energy, fill), -1))

    def guarded(self, energy, allowed, state, call):
        if allowed is None:
            return Aligned(masked_softmax(energy, allowed))
        return align(self, energy, allowed, state, call)

    plant("alignment", "planted", alignment(guarded))
    assert f"read={read}" in red("planted", "dead_rows")["dead_rows"]


def test_a_row_without_keys_that_is_nan(plant):
    def align(self, energy, allowed, state, call):
        if allowed is not None:
            energy = energy.masked_fill(~allowed, float("-inf"))
        return Aligned(torch.softmax(energy, -1))

    plant("alignment", "planted", alignment(align))
    assert "NaN" in red("planted", "dead_rows")["dead_rows"]


def test_a_row_without_keys_whose_gradient_is_nan(plant):
    class Gained(SoftmaxAlignment):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.gain = torch.nn.Parameter(torch.ones(()))

        def align(self, energy, allowed, state, call):
            allowed = torch.ones((), dtype=torch.bool) if allowed is None else allowed
            raised = torch.where(allowed, energy.exp(), 0.0) * self.gain
            total = raised.sum(-1, keepdim=True)
            return Aligned(torch.where(total != 0, raised / total, 0.0))

    plant("alignment", "planted", Gained)
    assert "gradient" in red("planted", "dead_rows")["dead_rows"]


def test_padding_that_takes_part_in_the_normalizer(plant):
    def align(self, energy, allowed, state, call):
        weights = torch.softmax(energy, -1)
        return Aligned(weights if allowed is None else torch.where(allowed, weights, 0.0))

    plant("alignment", "planted", alignment(align))
    failed = red("planted", "padding_invariance", "weight_law")
    assert set(failed) == {"padding_invariance", "weight_law"}


def test_padded_length_in_place_of_the_true_one(plant):
    class Padded(LocalPredictedPattern):
        def window(self, call):
            source = replace(call.memory.source, mask=None)
            allowed, gain = super().window(replace(call, memory=Memory(source, call.memory.parts)))
            return call.allowed if allowed is None else allowed & call.allowed, gain

    plant("pattern", "planted", Padded, LocalPredictedConfig)
    failed = red("planted", "padding_invariance", "oracle")
    assert set(failed) == {"padding_invariance", "oracle"}


def test_weights_on_hidden_keys(plant):
    def align(self, energy, allowed, state, call):
        fill = energy if allowed is None else torch.where(allowed, energy, -20.0)
        return Aligned(torch.softmax(fill, -1))

    plant("alignment", "planted", alignment(align))
    failed = red("planted")
    assert "hidden key" in failed["weight_law"]
    assert "padding_invariance" in failed


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_weights_that_do_not_sum_to_one(plant, factor):
    def align(self, energy, allowed, state, call):
        return Aligned(factor * masked_softmax(energy, allowed))

    plant("alignment", "planted", alignment(align))
    assert "sums to" in red("planted", "weight_law")["weight_law"]


def test_weights_that_are_negative(plant):
    def align(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        return Aligned(weights * torch.where(call.key_position == 0, -1.0, 1.0))

    plant("alignment", "planted", alignment(align))
    assert "negative" in red("planted", "weight_law")["weight_law"]


def test_randomness_in_evaluation(plant):
    def align(self, energy, allowed, state, call):
        return Aligned(masked_softmax(energy + 1e-3 * torch.rand_like(energy), allowed))

    plant("alignment", "planted", alignment(align))
    assert "global generator" in red("planted", "determinism")["determinism"]


def test_randomness_that_is_addressed_by_the_call_and_not_by_the_query(plant):
    def align(self, energy, allowed, state, call):
        if call.read == "train":
            rows, heads, length, keys = energy.shape
            draws = call.drawing.gumbel("planted", rows, heads, torch.arange(length), keys)
            energy = energy + draws.double()
        return Aligned(masked_softmax(energy, allowed))

    plant("alignment", "planted", alignment(align, reads=("train", "expected")))
    assert "read=train" in red("planted", "splits")["splits"]


def test_a_read_that_is_not_declared(plant):
    def align(self, energy, allowed, state, call):
        return Aligned(masked_softmax(energy * (2 if call.read == "hard" else 1), allowed))

    plant("alignment", "planted", alignment(align))
    assert "does not name `hard`" in red("planted", "determinism")["determinism"]


def test_coverage_with_wrong_mathematics_agrees_with_itself_and_not_with_the_loops(plant):
    class Corrupted(TuCoverage):
        def update(self, call, weights, state):
            after = dict(super().update(call, weights, state))
            coverage = leaf(after, "coverage")
            return {**after, "coverage": coverage + 0.1 * leaf(state, "coverage")}

    plant("feedback", "planted", Corrupted, TuCoverageConfig)
    found = certify("additive[feedback=planted]", checks=("splits", "oracle"))
    assert found.passed == ("splits",)
    assert "differs from the loops" in found.failed["oracle"]


def test_memory_changed_in_place(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        call.memory.source.value.detach().mul_(1.0)
        return found

    plant("score", "planted", score(energy, gives=LOCAL))
    assert "changed in place" in red("planted", "memory_pure")["memory_pure"]


def test_encoder_outputs_changed_by_prepare(plant):
    class Planted(ScaledDotScore):
        def prepare(self, source):
            source.key.detach().add_(1.0)
            return {}

    plant("score", "planted", Planted)
    assert "changed" in red("planted", "memory_pure")["memory_pure"]


def test_a_state_changed_in_place(plant):
    class Corrupted(TuCoverage):
        def update(self, call, weights, state):
            leaf(state, "coverage").detach().add_(0.0)
            return super().update(call, weights, state)

    plant("feedback", "planted", Corrupted, TuCoverageConfig)
    assert "given state" in red("additive[feedback=planted]", "memory_pure")["memory_pure"]


def test_relative_positions_without_scaling(plant):
    class Unscaled(ShawPosition):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.scale = 1.0

    plant("position", "planted", Unscaled, ShawConfig)
    assert set(red("planted", "oracle", "gradients", "splits")) == {"oracle", "gradients"}


def test_relative_positions_that_ignore_the_mask(plant):
    class Unmasked(FullPattern):
        def window(self, call):
            return None, None

    plant("pattern", "planted", Unmasked)
    failed = red("shaw_rpr[pattern=planted]")
    assert {"causality", "padding_invariance", "oracle", "weight_law", "dead_rows"} <= set(failed)


def test_a_gradient_that_is_cut(plant):
    def energy(self, call, features):
        return ScaledDotScore.energy(self, call, features).detach()

    plant("score", "planted", score(energy, gives=LOCAL))
    failed = red("planted", "oracle", "gradients")
    assert set(failed) == {"gradients"}


def test_places_of_keys_in_a_score_that_claims_not_to_look_at_them(plant):
    def energy(self, call, features):
        return ScaledDotScore.energy(self, call, features) + 0.1 * call.key_position

    plant("score", "planted", score(energy, gives=LOCAL))
    assert "order of keys" in red("planted", "permutation_law")["permutation_law"]


def test_places_of_queries_counted_from_the_call(plant):
    def energy(self, call, features):
        places = torch.arange(call.query.shape[2])[:, None]
        return ScaledDotScore.energy(self, call, features) * (1 + places)

    plant("score", "planted", score(energy, gives=LOCAL))
    assert "differ from all at once" in red("planted", "splits")["splits"]


def test_a_single_key(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return found / found.detach().std(-1, keepdim=True).mean()

    plant("score", "planted", score(energy, gives=LOCAL))
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert "one key" in red("planted", "one_key")["one_key"]


def test_a_sum_that_overflows_half_precision(plant):
    def align(self, energy, allowed, state, call):
        raised = torch.exp(energy + 8.0)
        raised = raised if allowed is None else torch.where(allowed, raised, 0.0)
        total = raised.sum(-1, keepdim=True)
        return Aligned(torch.where(total > 0, raised / total.clamp(min=1e-30), 0.0))

    plant("alignment", "planted", alignment(align))
    found = certify("planted", checks=("oracle", "dtypes"))
    assert found.passed == ("oracle",)
    assert "float16" in found.failed["dtypes"]


def test_arithmetic_in_less_than_the_precision_asked_for(plant):
    def align(self, energy, allowed, state, call):
        return Aligned(masked_softmax(energy.float(), allowed).to(energy.dtype))

    plant("alignment", "planted", alignment(align))
    assert "differs from the loops" in red("planted", "oracle")["oracle"]


def test_streaming_with_another_threshold(plant):
    class Eager(RaffelMonotonicAlignment):
        def stop_probability(self, energy):
            return super().stop_probability(energy) + 0.2

        def align(self, energy, allowed, state, call):
            keep, self_class = type(self).stop_probability, type(self)
            self_class.stop_probability = RaffelMonotonicAlignment.stop_probability
            try:
                return super().align(energy, allowed, state, call)
            finally:
                self_class.stop_probability = keep

    plant("alignment", "planted", Eager, RaffelMonotonicConfig)
    found = certify("additive[alignment=planted]", checks=("oracle", "stream"))
    assert found.passed == ("oracle",)
    assert "differs from hard decoding" in found.failed["stream"]


def test_streaming_that_never_stops_shows_nothing(plant):
    class Never(RaffelMonotonicAlignment):
        def stop_probability(self, energy):
            return super().stop_probability(energy) * 0.4

    plant("alignment", "planted", Never, RaffelMonotonicConfig)
    assert "show nothing" in red("additive[alignment=planted]", "stream")["stream"]


class Pretender(TopLeft):
    """Quadratic work under a linear label."""

    cost_exponent = 1.0


def test_quadratic_work_under_a_linear_label(plant):
    plant("mechanism", "planted", Pretender)
    assert "declared 1" in red("planted", "cost")["cost"]


def test_cubic_memory(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return (found.unsqueeze(-1) + found.unsqueeze(-2).mul(0.0)).mean(-1)

    plant("score", "planted", score(energy, gives=LOCAL))
    assert "to the power" in red("planted", "cost")["cost"]


@dataclass(frozen=True, kw_only=True)
class Outside(Config):
    """A default outside of its own range."""

    width: Annotated[int, IntRange(8, 16)] = 4


def test_a_default_outside_of_its_search_range(plant):
    plant("score", "planted", ScaledDotScore, Outside)
    assert "outside of its search range" in red("planted", "config")["config"]


def test_weights_that_nobody_wanted_or_of_another_shape(plant):
    def align(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        return Aligned(weights, terms={"entropy": weights.sum(-1)})

    plant("alignment", "planted", alignment(align))
    assert "entropy" in red("planted", "shapes")["shapes"]


def test_a_variant_that_stands_nowhere(plant):
    class Nowhere(ScaledDotScore):
        cannot = dict.fromkeys(("cross", "causal", "self", "pool"), "stands nowhere.")

    plant("score", "planted", Nowhere)
    found = certify("planted")
    assert "stands nowhere" in found.failed["runs_somewhere"]
    assert not found.green()


def test_a_crash_is_a_failure_with_a_sentence(plant):
    def align(self, energy, allowed, state, call):
        raise ZeroDivisionError("no such thing")

    plant("alignment", "planted", alignment(align))
    assert "ZeroDivisionError: no such thing" in red("planted", "oracle")["oracle"]


def test_a_check_that_is_refused_is_not_green(plant):
    class Half(SoftmaxAlignment):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            if dims.regime == "causal":
                raise RuntimeError("not today")

    plant("alignment", "planted", Half)
    found = certify("planted", checks=("causality", "oracle"))
    assert found.passed == ("oracle",)
    assert found.skipped == found.missing() == {"causality": "RuntimeError: not today"}
    assert not found.green()


def test_the_loops_of_these_tests_are_the_softmax():
    energy = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert float(oracle_softmax(energy, [True, False])[0]) == 1.0
