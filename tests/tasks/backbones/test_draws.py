"""Slots of one network draw independently of each other: layers, hops, sources and directions."""

from dataclasses import replace

import pytest
import torch

from bench.api.noise import Noise
from bench.api.slot import Slot
from bench.api.trace import Mode

SEED, STACK = 7, "transformer_seq2seq[width=8,heads=2,layers=2"
PLACES = [
    ("hard_reinforce", "two_source", ""),
    ("hard_gumbel_st", "two_source", f"{STACK},combiner=flat]"),
    ("hard_gumbel_st", "two_source", f"{STACK},combiner=serial]"),
    ("hard_gumbel_st", "two_source", f"{STACK},combiner=serial];self"),
    ("hard_gumbel_st", "recall", "snail"),
    ("hard_reinforce", "nli_syn", "pair"),
    ("hard_gumbel_st", "chains", "memn2n"),
]


@pytest.mark.parametrize(("variant", "task", "backbone"), PLACES)
def test_no_two_calls_of_a_forward_pass_have_the_same_draws(
    built, monkeypatch, variant, task, backbone
):
    backbone, _, slot = backbone.partition(";")
    network, _, batch = built(variant, task=task, backbone=backbone, slot=slot)
    seen: list[int] = []
    attend = Slot.attend

    def watched(self, *arguments, **call):
        if call.get("noise") is not None:
            seen.append(call["noise"].seed)
        return attend(self, *arguments, **call)

    monkeypatch.setattr(Slot, "attend", watched)
    with torch.no_grad():
        network(batch, Mode(read="train", noise=Noise(SEED)))
    assert len(seen) > 1
    assert len(set(seen)) == len(seen)
    assert SEED in seen


def test_sources_of_one_layer_draw_otherwise_than_another_layer():
    first = Mode(noise=Noise(SEED))
    drawn = {
        replace(first, noise=layer.noise.of_source(source)).noise.seed
        for layer in (first.layer(index) for index in range(8))
        for source in range(4)
    }
    assert len(drawn) == 32
