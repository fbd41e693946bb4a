"""Self-attention between convolutions: what is added, what is pooled, what is refused."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from bench.api.errors import InvalidConfig, Refused
from bench.api.trace import Mode

SMALL = "image_classifier[width=8,layers=1,heads=2]"
TASK = "digits[patch=2]"


def double(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x


@pytest.fixture
def network(built):
    """`network(variant, backbone)` -> the network and a batch in its precision."""

    def make(variant: str = "mha", backbone: str = SMALL):
        found = built(variant, task=TASK, backbone=backbone)
        return found.backbone, found.batch.map(double)

    return make


def test_the_network_equals_the_equations(network, near):
    backbone, batch = network("sagan")
    slot, text = backbone.slot, batch.sources[0]
    places = torch.cartesian_prod(*[torch.linspace(-1, 1, 4).double()] * 2).expand(4, -1, -1)
    x = backbone.enter(torch.cat((backbone.embedding(text.frames), places), -1))

    def convolve(block, x):
        given = functional.gelu(block.norms[0](x)).transpose(1, 2).reshape(4, 8, 4, 4)
        return x + block.layers[0](given).reshape(4, 8, 16).transpose(1, 2)

    x = convolve(backbone.before, x)
    heads = slot.heads
    scores = heads.to_query(x) @ heads.to_key(x).transpose(1, 2)
    read = scores.softmax(-1) @ heads.to_value(x)
    x = convolve(backbone.behind, x + heads.gamma * heads.to_output(read))
    near(backbone(batch, Mode()).states[:, 0], x.mean(1))


def test_one_place_may_outweigh_all_others(network):
    """A norm at each place bounds what a place says: a digit among 63 other places is lost."""
    backbone, batch = network("uniform")
    text = batch.sources[0]
    frames = text.frames.clone()
    frames[:, 5] = 1000.0
    loud = replace(batch, sources=(replace(text, frames=frames),))
    quiet, heard = (backbone(one, Mode()).states.norm(dim=-1) for one in (batch, loud))
    assert (heard > 20 * quiet).all()


def test_a_closed_gate_leaves_the_convolutions_alone(network, near):
    backbone, batch = network("sagan")
    torch.nn.init.zeros_(backbone.slot.heads.gamma)
    before = backbone(batch, Mode()).states
    for layer in (backbone.slot.heads.to_query, backbone.slot.heads.to_value):
        torch.nn.init.ones_(layer.weight)
    near(backbone(batch, Mode()).states, before)


@pytest.mark.parametrize("variant", ["mha", "sagan", "additive", "uniform"])
def test_gradients_reach_every_parameter_that_the_variant_uses(variant, network):
    backbone, batch = network(variant)
    trace = backbone(batch, Mode())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    missing = [name for name, p in backbone.named_parameters() if p.grad is None]
    assert all(name.startswith("slot.") for name in missing)
    assert variant == "uniform" or not missing


def test_weights_over_the_picture_itself_are_not_shown_as_an_alignment(network):
    backbone, batch = network()
    assert not backbone.aligns(batch)
    assert backbone(batch, Mode(want_weights=True)).weights.shape == (4, 16, 16)


def test_a_picture_in_a_batch_is_the_picture_alone(network, near):
    backbone, batch = network()
    whole = backbone(batch, Mode()).states
    for row in range(4):
        alone = backbone(batch.select(torch.tensor([row])), Mode()).states
        near(alone, whole[row : row + 1])


def test_tasks_without_a_picture_and_impossible_sizes_are_refused(built):
    found = built("mha", task="after_marker", backbone=SMALL)
    with pytest.raises(Refused, match="no grid"):
        found.backbone(found.batch, Mode())
    with pytest.raises(InvalidConfig, match="heads divide width"):
        built("mha", task=TASK, backbone="image_classifier[width=9,heads=2]")


def test_tasks_that_ask_for_several_words_are_refused(built):
    found = built("mha", task="digit_scenes[evaluate=2]", backbone=SMALL)
    with pytest.raises(Refused, match="several"):
        found.backbone(found.batch.map(double), Mode())
