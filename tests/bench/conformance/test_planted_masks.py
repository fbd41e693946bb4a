"""Planted defects of masks: the future, padding, and rows without any key."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from bench.api.call import MixResult
from bench.api.chain import Chain
from bench.api.normalizer import Normalized
from bench.api.source import Memory
from bench.api.variant import Variant
from bench.conformance import certify
from variants.masks.full import FullMask
from variants.masks.luong_local_p import LocalPredictedConfig, LocalPredictedMask
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.normalizers.softmax import SoftmaxConfig, SoftmaxNormalizer
from variants.scores.scaled_dot import ScaledDotScore


def test_the_plain_chain_of_these_tests_is_green(plant):
    plant.normalizer(SoftmaxNormalizer.normalize)
    assert certify("planted").green()


def test_future_that_leaks_once_a_padding_mask_is_passed(plant):
    def normalize(self, energy, allowed, state, call):
        mask = call.memory.source.mask
        return Normalized(masked_softmax(energy, allowed if mask is None else mask[:, None, None]))

    plant.normalizer(normalize)
    failed = plant.red("planted")
    assert "with padded keys" in failed["causality"]
    assert "depends on the" in failed["causality"]


@pytest.mark.parametrize("first", range(5))
def test_future_that_leaks_within_one_block_of_two(plant, first):
    def normalize(self, energy, allowed, state, call):
        if call.causal:
            begins = (call.position == first)[:, None]
            allowed = allowed | begins & (call.key_position == first + 1)
        return Normalized(masked_softmax(energy, allowed))

    plant.normalizer(normalize)
    sentence = plant.red("planted", "causality")["causality"]
    assert f"query {first} depends on the key at {first + 1}" in sentence


def test_future_that_leaks_without_any_gradient(plant):
    def normalize(self, energy, allowed, state, call):
        best = energy.detach().argmax(-1, keepdim=True)
        nudge = 0.1 * (call.key_position == best)
        return Normalized(masked_softmax(energy + nudge * energy.detach().amax(-1, True), allowed))

    plant.normalizer(normalize)
    assert "changing keys after" in plant.red("planted", "causality")["causality"]


def test_queries_that_do_not_see_their_own_place(plant):
    def normalize(self, energy, allowed, state, call):
        if call.causal:
            allowed = allowed & (call.key_position < call.position[:, None])
        return Normalized(masked_softmax(energy, allowed))

    plant.normalizer(normalize)
    assert "does not see its own value" in plant.red("planted", "causality")["causality"]


def test_causal_mask_aligned_to_the_top_left_where_queries_are_fewer_than_keys(plant):
    def normalize(self, energy, allowed, state, call):
        if call.causal:
            queries, keys = energy.shape[2:]
            allowed = torch.ones(queries, keys, dtype=torch.bool).tril()[None, None]
            if call.memory.source.mask is not None:
                allowed = allowed & call.memory.source.mask[:, None, None]
        return Normalized(masked_softmax(energy, allowed))

    plant.normalizer(normalize)
    failed = plant.red("planted")
    assert "does not see its own value" in failed["causality"]
    assert "differ from all at once" in failed["splits"]


class TopLeft(Variant):
    """Fused attention with the flag that aligns top-left."""

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


def test_fused_kernel_with_is_causal_and_a_cache(plant):
    plant("mechanism", TopLeft)
    assert "differ from all at once" in plant.red("planted", "splits")["splits"]


def test_rows_that_see_each_other(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return found * found.detach().abs().mean()

    plant.score(energy)
    failed = plant.red("planted", "padding_invariance", "oracle")
    assert set(failed) == {"padding_invariance", "oracle"}


@pytest.mark.parametrize("read", ["train", "expected", "hard"])
def test_a_row_without_keys_wrong_in_one_read_mode(plant, read):
    def normalize(self, energy, allowed, state, call):
        if call.read != read:
            return Normalized(masked_softmax(energy, allowed))
        fill = torch.finfo(energy.dtype).min
        return Normalized(torch.softmax(torch.where(allowed, energy, fill), -1))

    def guarded(self, energy, allowed, state, call):
        if allowed is None:
            return Normalized(masked_softmax(energy, allowed))
        return normalize(self, energy, allowed, state, call)

    plant.normalizer(guarded)
    assert f"read={read}" in plant.red("planted", "dead_rows")["dead_rows"]


def test_a_row_without_keys_that_is_nan(plant):
    def normalize(self, energy, allowed, state, call):
        if allowed is not None:
            energy = energy.masked_fill(~allowed, float("-inf"))
        return Normalized(torch.softmax(energy, -1))

    plant.normalizer(normalize)
    assert "NaN" in plant.red("planted", "dead_rows")["dead_rows"]


def test_a_row_without_keys_whose_gradient_is_nan(plant):
    class Gained(SoftmaxNormalizer):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.gain = torch.nn.Parameter(torch.ones(()))

        def normalize(self, energy, allowed, state, call):
            allowed = torch.ones((), dtype=torch.bool) if allowed is None else allowed
            raised = torch.where(allowed, energy.exp(), 0.0) * self.gain
            total = raised.sum(-1, keepdim=True)
            return Normalized(torch.where(total != 0, raised / total, 0.0))

    plant("normalizer", Gained, SoftmaxConfig)
    assert "gradient" in plant.red("planted", "dead_rows")["dead_rows"]


def test_padding_that_takes_part_in_the_normalizer(plant):
    def normalize(self, energy, allowed, state, call):
        weights = torch.softmax(energy, -1)
        return Normalized(weights if allowed is None else torch.where(allowed, weights, 0.0))

    plant.normalizer(normalize)
    failed = plant.red("planted", "padding_invariance", "weight_law")
    assert set(failed) == {"padding_invariance", "weight_law"}


def test_padded_length_in_place_of_the_true_one(plant):
    class Padded(LocalPredictedMask):
        def window(self, call):
            source = replace(call.memory.source, mask=None)
            allowed, gain = super().window(replace(call, memory=Memory(source, call.memory.parts)))
            return call.allowed if allowed is None else allowed & call.allowed, gain

    plant("mask", Padded, LocalPredictedConfig)
    failed = plant.red("planted", "padding_invariance", "oracle")
    assert set(failed) == {"padding_invariance", "oracle"}


def test_weights_on_hidden_keys(plant):
    def normalize(self, energy, allowed, state, call):
        fill = energy if allowed is None else torch.where(allowed, energy, -20.0)
        return Normalized(torch.softmax(fill, -1))

    plant.normalizer(normalize)
    failed = plant.red("planted")
    assert "hidden key" in failed["weight_law"]
    assert "padding_invariance" in failed


def test_relative_positions_that_ignore_the_mask(plant):
    class Unmasked(FullMask):
        def window(self, call):
            return None, None

    plant("mask", Unmasked)
    failed = plant.red("shaw_rpr[mask=planted]")
    assert {"causality", "padding_invariance", "oracle", "weight_law", "dead_rows"} <= set(failed)


def test_the_loops_of_these_tests_are_the_softmax():
    energy = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert float(oracle_softmax(energy, [True, False])[0]) == 1.0
