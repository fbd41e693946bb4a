from dataclasses import replace

import pytest
import torch

from bench.api.batch import Text
from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes import position_readout
from tasks.probes.linear_readout import RIDGE, half_of, read_linearly
from tasks.probes.position_readout import _layers

TASK = "distant_pair[farthest=4,length=12,pairs=2,evaluate=64]"
NETWORK = "tagger[width=64,heads=2,layers=3]"


def measured(seen):
    found = make("probe", parse("position_readout")).measure(seen)
    assert {(one.metric, one.axis) for one in found} == {("position_accuracy", "layer")}
    return {one.x: one.value for one in found}


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_added_positions_are_read_and_missing_ones_are_not(subject):
    options = {"task": TASK, "backbone": NETWORK, "batches": 2}
    placed, plain = (measured(subject(name, **options)) for name in ("sinusoid", "scaled_dot"))
    assert list(placed) == [0, 1, 2, 3]
    assert placed[0] > 0.95
    assert all(value < 3 / 12 for value in plain.values())


def test_a_layer_is_read_before_the_first_block_and_behind_each(subject):
    seen = subject("sinusoid", task=TASK, backbone=NETWORK)
    backbone, batch = seen.backbone, seen.batches[0]
    states = _layers(backbone, batch).states
    embedded = backbone.embedding(batch.sources[0].tokens) * backbone.scale
    assert torch.equal(states[0], backbone.blocks[0].own.variant.embed(embedded, 0))
    # without weights other code computes the same, so that the last bits differ
    said = backbone(batch, Mode()).states
    assert (backbone.norm(states[-1]) - said).abs().max() < 1e-10


def test_positions_that_a_layer_throws_away_are_not_read_above_it(subject):
    seen = subject("sinusoid", task=TASK, backbone=NETWORK, batches=2)
    block = seen.backbone.blocks[1]
    with torch.no_grad():
        # the second block hands on nothing but a constant
        block.own_around.residual = block.around.residual = False
        block.feed[2].weight.zero_()
    found = measured(seen)
    assert found[1] > 0.8
    assert found[2] <= 2 / 12
    assert found[3] <= 2 / 12


def test_the_readout_is_ridge_regression_on_one_hot_places():
    known, asked = normal(40, 5), normal(30, 5, seed=1)
    places = torch.arange(40) % 4
    middle, spread = known.mean(0), known.var(0).mean().sqrt()
    scaled = (known - middle) / spread
    wanted = torch.zeros(40, 4, dtype=torch.float64)
    wanted[torch.arange(40), places] = 1.0
    # the penalty as further rows of a plain least squares problem
    weights = torch.linalg.lstsq(
        torch.cat((scaled, (RIDGE * 40) ** 0.5 * torch.eye(5).double())),
        torch.cat((wanted - wanted.mean(0), torch.zeros(5, 4).double())),
    ).solution
    expected = ((asked - middle) / spread @ weights + wanted.mean(0)).argmax(-1)
    assert torch.equal(read_linearly(known, places, asked), expected)


def test_the_scale_of_states_does_not_matter():
    known, asked, places = normal(40, 5), normal(30, 5, seed=1), torch.arange(40) % 4
    assert torch.equal(
        read_linearly(known, places, asked), read_linearly(1e6 * known + 3, places, 1e6 * asked + 3)
    )


def test_an_example_is_in_one_half_with_all_its_tokens():
    counts = torch.tensor([3, 1, 4, 1, 5, 9])
    halves = [set(part.tolist()) for part in half_of(counts, 7).split(counts.tolist())]
    assert all(len(half) == 1 for half in halves)
    assert sum(half == {True} for half in halves) == 3


def test_padded_tokens_have_no_place(subject):
    seen = subject("sinusoid", task=TASK, backbone=NETWORK)
    (batch,) = seen.batches
    real = torch.arange(12) < torch.arange(5, 13).repeat(8)[:, None]
    text = Text(batch.sources[0].tokens * real, real)
    found = _layers(seen.backbone, replace(batch, sources=(text,)))
    assert torch.equal(found.real, real)
    assert position_readout._places(real)[:12].tolist() == [*range(5), *range(6), 0]


def test_decoders_are_read_too(subject):
    assert list(measured(subject("scaled_dot", task="recall", batches=2))) == [0, 1]


def test_networks_without_one_stack_of_blocks_are_refused(subject):
    with pytest.raises(Refused, match="no transformer blocks"):
        measured(subject("additive"))
    with pytest.raises(Refused, match="not one stack"):
        measured(subject("scaled_dot", backbone="transformer_seq2seq[width=16,heads=2]"))


def test_the_network_is_left_as_it_was(subject):
    seen = subject("sinusoid", task=TASK, backbone=NETWORK)
    measured(seen)
    assert all(not module._forward_hooks for module in seen.backbone.modules())
