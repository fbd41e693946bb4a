"""The tagger: who sees whom, where positions are, what padding and missing parts change."""

from dataclasses import replace

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.errors import InvalidConfig, Refused
from bench.api.trace import Mode
from bench.training.refusals import source_refusal

TASK = "distant_pair[farthest=4,length=9,pairs=2,symbols=5]"
SMALL = "tagger[width=16,heads=2,layers=2]"
RECURRENT = "tagger[width=16,heads=2,layers=1,encoder=birnn[cell=lstm]]"
ITSELF = "sliding_window[window=1]"


def sees(found) -> torch.Tensor:
    """|d answer[t] / d embedding[s]| of the first row, T x S."""
    kept = []

    def keep(module, args, out):
        kept.append(out.detach().requires_grad_())
        return kept[-1]

    hook = found.backbone.embedding.register_forward_hook(keep)
    trace = found.backbone(found.batch, Mode())
    hook.remove()
    said = found.backbone.emit(trace.states, trace.context, trace.embedded)
    slopes = []
    for t in range(said.shape[1]):
        (slope,) = torch.autograd.grad(said[0, t].sin().sum(), kept[0], retain_graph=True)
        slopes.append(slope[0].abs().sum(-1))
    return torch.stack(slopes)


@pytest.mark.parametrize(
    ("variant", "backbone"), [("scaled_dot", SMALL), ("sinusoid", SMALL), (ITSELF, RECURRENT)]
)
def test_every_answer_depends_on_every_token_on_both_sides(variant, backbone, built):
    slopes = sees(built(variant, task=TASK, backbone=backbone))
    assert slopes.shape == (9, 9)
    assert (slopes > 0).all()


def test_attention_to_itself_mixes_no_tokens_so_that_recurrent_layers_alone_do(built):
    slopes = sees(built(ITSELF, task=TASK, backbone=SMALL))
    own = torch.eye(9, dtype=torch.bool)
    assert (slopes[own] > 0).all()
    assert (slopes[~own] == 0).all()


def moved(found, near, *, same: bool) -> None:
    """Whether a shuffled source has the shuffled states."""
    order = torch.tensor([3, 0, 8, 1, 7, 2, 6, 4, 5])
    (text,) = found.batch.sources
    shuffled = replace(found.batch, sources=(Text(text.tokens[:, order], None),))
    there = found.backbone(shuffled, Mode()).states
    before = found.backbone(found.batch, Mode()).states[:, order]
    if same:
        near(there, before)
    else:
        assert (there - before).abs().max() > 1e-2


@pytest.mark.parametrize(
    ("variant", "options", "same"),
    [
        ("scaled_dot", "", True),
        ("scaled_dot", ",positions_each_layer=true", True),
        ("sinusoid", "", False),
        ("scaled_dot", ",beside=6", False),
    ],
)
def test_order_is_known_where_positions_are_added_or_stand_beside(
    variant, options, same, built, near
):
    backbone = f"tagger[width=16,heads=2,layers=2{options}]"
    moved(built(variant, task=TASK, backbone=backbone), near, same=same)


def test_positions_beside_are_sinusoids_in_units_of_their_own(built, near):
    found = built("scaled_dot", task=TASK, backbone="tagger[width=16,heads=2,beside=6]")
    embedded = found.backbone(found.batch, Mode()).embedded
    table = found.backbone.embedding.weight
    assert (table.shape[1], embedded.shape[2]) == (10, 16)
    near(embedded[..., :10], table[found.batch.sources[0].tokens] * 10**0.5)
    for place in range(9):
        angles = torch.tensor([place / 10000 ** (2 * i / 6) for i in range(3)]).double()
        expected = torch.stack((angles.sin(), angles.cos()), 1).flatten()
        near(embedded[:, place, 10:], expected.expand(4, -1), 1e-5)


def test_positions_are_added_once_or_in_front_of_every_block(built, near):
    once, each = (
        built("sinusoid", task=TASK, backbone=f"tagger[width=16,heads=2,layers=2{more}]")
        for more in ("", ",positions_each_layer=true")
    )
    given = {}
    for name, found in (("once", once), ("each", each)):
        _, second = found.backbone.blocks
        hook = second.own_around.norm.register_forward_hook(
            lambda module, args, out, name=name: given.update({name: args[0]})
        )
        found.backbone(found.batch, Mode())
        hook.remove()
    added = each.backbone.blocks[0].own.variant.embed(torch.zeros_like(given["once"]), 0)
    near(given["each"], given["once"] + added)


@pytest.mark.parametrize("options", ["", ",norm=post", ",norm=off", ",residual=false"])
def test_gradients_reach_every_parameter(options, built):
    found = built("sinusoid", task=TASK, backbone=f"tagger[width=16,heads=2,layers=3{options}]")
    trace = found.backbone(found.batch, Mode())
    found.backbone.output.nll(trace, found.backbone.emit, found.batch).sum().backward()
    assert all(parameter.grad is not None for parameter in found.backbone.parameters())


@pytest.mark.parametrize(
    ("variant", "encoder"), [("scaled_dot", "embed"), ("sinusoid", "embed"), (ITSELF, "birnn")]
)
def test_an_example_says_alone_what_it_says_beside_longer_ones(variant, encoder, placed, near):
    backbone = placed(f"tagger[width=16,heads=2,layers=2,encoder={encoder}]", variant, (11,), 7)
    lengths = torch.tensor([6, 2, 5, 1])
    real = torch.arange(6) < lengths[:, None]
    tokens = torch.randint(4, 11, (4, 6), generator=torch.Generator().manual_seed(0)) * real
    batch = Batch((Text(tokens, real),), tokens, tokens, real)
    whole = backbone(batch, Mode()).states
    for row, length in enumerate(lengths.tolist()):
        one = tokens[row : row + 1, :length]
        alone = Batch((Text(one, None),), one, one, one > 0)
        near(whole[row, :length], backbone(alone, Mode()).states[0])


def test_only_the_last_block_gives_weights_and_they_are_no_alignment(built):
    found = built("scaled_dot", task=TASK, backbone=SMALL)
    trace = found.backbone(found.batch, Mode())
    assert [one.weights is not None for one in trace.attended] == [True, False]
    assert trace.weights.shape == (4, 9, 9)
    assert not found.backbone.aligns(found.batch)


def test_what_has_no_answer_for_each_token_is_refused(built):
    for task, backbone in (("keyword_cls", SMALL), (TASK, SMALL[:-1] + ",encoder=pyramid]")):
        found = built("scaled_dot", task=task, backbone=backbone)
        with pytest.raises(Refused, match="one answer a state of its source"):
            found.backbone(found.batch, Mode())
    assert "reads a source" in source_refusal(built("dot", task="offset").task.sizes, "tagger")


def test_attention_of_another_width_and_impossible_options_are_refused(built):
    with pytest.raises(Refused, match="it must have width 32"):
        built("snail", task=TASK, backbone="tagger[width=32,heads=2]")
    for beside in (-1, 16):
        with pytest.raises(InvalidConfig, match="beside must be at least 0 and below width 16"):
            built("scaled_dot", task=TASK, backbone=f"tagger[width=16,heads=2,beside={beside}]")
