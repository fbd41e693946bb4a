"""Planted defects that a few keys do not show: behind a chunk, a block, a window that is copied."""

from dataclasses import replace

import torch

from bench.api import blocks
from bench.api.normalizer import Normalized
from bench.conformance import certify
from variants.masks import luong_local_m
from variants.masks.longformer import LongformerConfig, LongformerMask
from variants.mechanisms import chunked_state, linear_attention, state_recurrence
from variants.normalizers.masked_softmax import masked_softmax
from variants.scores import pair_blocks, tanh_sum
from variants.scores.scaled_dot import ScaledDotScore

EVERYTHING_ELSE = ("causality", "splits", "oracle", "gradients", "batch_invariance", "weight_law")


def red_at_real_lengths_alone(selector):
    assert certify(selector, checks=EVERYTHING_ELSE).green()
    found = certify(selector, checks=["long"])
    assert not found.green(), "the defect was not found"
    return found.failed["long"]


def test_linear_attention_that_answers_zero_behind_its_first_chunk(monkeypatch):
    mix = linear_attention.LinearAttention.mix

    def broken(self, call, carried, want_weights):
        found = mix(self, call, carried, want_weights)
        output = found.output.clone()
        output[:, :, chunked_state.CHUNK :] = 0
        return found._replace(output=output)

    monkeypatch.setattr(linear_attention.LinearAttention, "mix", broken)
    assert red_at_real_lengths_alone("linear_attention")


def test_a_softmax_that_forgets_keys_behind_the_hundredth(plant):
    def normalize(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        seen = torch.arange(weights.shape[-1]) < 100
        weights = torch.where(seen, weights, 0.0)
        return Normalized(weights / weights.sum(-1, keepdim=True).clamp_min(1e-30))

    plant.normalizer(normalize)
    sentence = red_at_real_lengths_alone("additive[normalizer=planted]")
    assert "150 keys differ from the loops" in sentence


def test_blocks_that_leave_out_the_last_row(monkeypatch):
    def broken(rows, queries, steps):
        found = list(pair_blocks.blocks(rows, queries, steps))
        if len(found) == 1:
            return iter(found)
        row, at = found[-1]
        found[-1] = slice(row.start, row.stop - 1), at
        return iter(found)

    monkeypatch.setattr(tanh_sum, "blocks", broken)
    assert red_at_real_lengths_alone("additive")


def test_windows_that_are_copied_out_one_place_late(monkeypatch):
    gather = luong_local_m.LocalMonotonicMask.gather

    def broken(self, call):
        windows = gather(self, call)
        last = call.memory.num_keys - 1
        return windows._replace(keys=(windows.keys + 1).clamp(max=last))

    monkeypatch.setattr(luong_local_m.LocalMonotonicMask, "gather", broken)
    assert red_at_real_lengths_alone("luong_local_m")


def test_energies_of_the_first_rows_alone(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return torch.cat((found[:32], torch.zeros_like(found[32:])))

    plant.score(energy)
    assert "of 65 differs alone" in red_at_real_lengths_alone("planted")


def test_a_product_of_decays_that_is_divided_by(plant):
    def normalize(self, energy, allowed, state, call):
        decay = torch.full(energy.shape[-1:], 0.4, dtype=energy.dtype).cumprod(0)
        return Normalized(masked_softmax(energy, allowed) / decay * decay)

    plant.normalizer(normalize)
    sentence = red_at_real_lengths_alone("additive[normalizer=planted]")
    assert "float32 gives no finite output with 260 keys" in sentence


def test_padding_that_a_recurrence_forgets_behind_its_first_chunk(monkeypatch):
    def lost(source):
        if source.mask is None:
            return source
        seen = torch.arange(source.num_keys) >= chunked_state.CHUNK
        return replace(source, mask=source.mask | seen)

    steps = state_recurrence.without_padding
    monkeypatch.setattr(
        state_recurrence, "without_padding", lambda made, source, *a: steps(made, lost(source), *a)
    )
    widened = state_recurrence.StateRecurrence.widened

    def broken(self, call, dtype):
        memory = replace(call.memory, source=lost(call.memory.source))
        return widened(self, replace(call, memory=memory), dtype)

    monkeypatch.setattr(state_recurrence.StateRecurrence, "widened", broken)
    assert "what row 1 answers to a token behind it" in red_at_real_lengths_alone("gla")


def test_padding_that_blocks_of_a_band_forget(monkeypatch):
    allowed = blocks._allowed

    def broken(cut, call, mask):
        memory = replace(call.memory, source=replace(call.memory.source, mask=None))
        return allowed(cut, replace(call, memory=memory), mask)

    monkeypatch.setattr(blocks, "_allowed", broken)
    assert "padded to 150 keys differs alone" in red_at_real_lengths_alone("sliding_window")


def test_a_reach_under_causality_that_forgets_an_option_of_the_mask(plant):
    """The smallest options, which have no dilation, do not show it."""

    class Near(LongformerMask):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            if dims.regime == "causal":
                self.far = self.reach = config.window - 1

    plant("mask", Near, LongformerConfig)
    sentence = certify("longformer[mask=planted[dilation=3,window=8]]", checks=["long"]).failed[
        "long"
    ]
    assert sentence.startswith("causal")
