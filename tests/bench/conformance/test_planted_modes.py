"""Defects of code that runs in one mode alone: training, decoding, another format, a probe."""

from dataclasses import replace

import pytest
import torch

from bench.api.call import MixResult
from bench.api.normalizer import Normalized
from bench.conformance import certify
from variants.mechanisms.hopfield import Hopfield, HopfieldConfig
from variants.mechanisms.linear_attention import LinearAttention
from variants.mechanisms.multi_dimensional import (
    MultiDimensionalAttention,
    MultiDimensionalConfig,
)
from variants.normalizers.masked_softmax import masked_softmax
from variants.normalizers.softmax import SoftmaxConfig, SoftmaxNormalizer
from variants.outputs.neural_cache import NeuralCacheConfig, NeuralCacheOutput


def test_fused_code_that_trains_without_the_draws_of_training(plant):
    """Networks train without weights, where fused code takes the place of `normalize`."""

    class Dropping(SoftmaxNormalizer):
        reads = ("train", "expected")

        def normalize(self, energy, allowed, state, call):
            weights = masked_softmax(energy, allowed)
            if call.read != "train":
                return Normalized(weights)
            rows, heads, _, keys = weights.shape
            drawn = call.noise.uniform("dropped", rows, heads, call.position, keys)
            return Normalized(2 * weights * (drawn > 0.5))

    plant("normalizer", Dropping, SoftmaxConfig)
    said = plant.red("planted", "determinism")["determinism"]
    assert "no other seed changes anything without weights" in said


def test_decoding_that_is_wrong_in_float32_alone(plant):
    def normalize(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        wrong = energy.dtype != torch.float64 and energy.shape[2] == 1
        return Normalized(weights.flip(-1) if wrong else weights)

    plant.normalizer(normalize)
    assert "query by query" in plant.red("planted", "dtypes")["dtypes"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_choice_that_is_another_one_in_other_formats(plant, dtype):
    def normalize(self, energy, allowed, state, call):
        return Normalized(masked_softmax(-energy if energy.dtype == dtype else energy, allowed))

    plant.normalizer(normalize, gives=SoftmaxNormalizer.gives | {"jumps"})
    assert str(dtype).removeprefix("torch.") in plant.red("planted", "dtypes")["dtypes"]


@pytest.mark.parametrize("scale", [5**-0.5, 5**0.5])
def test_another_scale_in_bfloat16(plant, scale):
    def normalize(self, energy, allowed, state, call):
        return Normalized(
            masked_softmax(scale * energy if energy.dtype == torch.bfloat16 else energy, allowed)
        )

    plant.normalizer(normalize)
    assert "bfloat16 is off" in plant.red("planted", "dtypes")["dtypes"]


def test_weights_that_no_loops_give(plant):
    class Untold(MultiDimensionalAttention):
        def mix(self, call, carried, want_weights):
            found = super().mix(call, carried, want_weights)
            if found.weights is None:
                return found
            return found._replace(weights=torch.ones_like(found.weights) / found.weights.shape[3])

        def oracle(self, query, source, read, **call):
            return super().oracle(query, source, read, **call)[0], None

    plant("mechanism", Untold, MultiDimensionalConfig)
    assert "its loops give none" in plant.red("planted", "oracle")["oracle"]


def test_weights_that_nobody_declared(plant):
    class Boasting(LinearAttention):
        def mix(self, call, carried, want_weights):
            found = super().mix(call, carried, want_weights)
            shape = (*found.output.shape[:3], call.memory.num_keys)
            return found._replace(weights=found.output.new_full(shape, 7.0))

    plant("mechanism", Boasting)
    assert "though no part says so" in plant.red("planted", "shapes")["shapes"]


def test_a_probe_that_is_not_heard(plant):
    class Deaf(Hopfield):
        def mix(self, call, carried, want_weights):
            call.edit = None
            return super().mix(call, carried, want_weights)

    plant("mechanism", Deaf, HopfieldConfig)
    said = plant.red("planted", "weight_law")["weight_law"]
    assert "weights that a probe sets to zero change nothing" in said


def test_growth_that_is_declared_from_a_length_on_that_nobody_counts(plant):
    class Later(SoftmaxOfAll):
        time_exponent = memory_exponent = 1.0
        exponents_from = 10**9

    plant("mechanism", Later)
    assert "nobody can count it there" in plant.red("planted", "cost")["cost"]


class SoftmaxOfAll(LinearAttention):
    """A matrix of energies in a mechanism that says it is linear."""

    def mix(self, call, carried, want_weights):
        found = super().mix(call, carried, want_weights)
        key = call.memory.source.key
        matrix = (call.query @ key.repeat_interleave(call.query.shape[1] // key.shape[1], 1).mT) * 0
        return MixResult(found.output + matrix.sum(-1, keepdim=True), None, found.carried, {})


def test_a_variant_that_is_scored_by_draws_of_training(plant):
    class Drawn(SoftmaxNormalizer):
        default_read = "train"

    plant("normalizer", Drawn, SoftmaxConfig)
    assert "is scored by `train`" in plant.red("planted", "determinism")["determinism"]


def test_a_cache_of_words_whose_rows_do_not_come_first(plant):
    """Searches put its rows into another order."""

    class Turned(NeuralCacheOutput):
        def begin(self, batch, memories):
            return {
                name: one.transpose(0, 1) for name, one in super().begin(batch, memories).items()
            }

        def step(self, trace, emit, batch, words, carried):
            said, after = super().step(trace, emit, batch, words, turned(carried))
            return said, turned(after)

    plant("output", Turned, NeuralCacheConfig)
    found = certify("additive[output=planted]", checks=["output"])
    assert "has not the rows first" in found.failed["output"]


def turned(carried):
    return {name: one.transpose(0, 1) for name, one in carried.items()}


def test_a_probe_of_which_only_zeros_are_heard(plant):
    class Partly(Hopfield):
        def mix(self, call, carried, want_weights):
            if call.edit is not None:
                edit = call.edit
                edited = lambda weights, one: weights * edit(weights, one).bool()  # noqa: E731
                call = replace(call, edit=edited)
            return super().mix(call, carried, want_weights)

    plant("mechanism", Partly, HopfieldConfig)
    said = plant.red("planted", "weight_law")["weight_law"]
    assert "not the weights that a probe turns round times values" in said
