"""What a state of the convolutions over a grid can know, found by perturbing places."""

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch, Text
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.backbones.encoders.grid_cnn import coordinates

ROWS, COLUMNS, WIDTH = 5, 6, 4


@pytest.fixture
def build(draw):
    """`build(options)` -> the encoder in float64, every parameter drawn."""

    def make(options: str = ""):
        made = registry.make("encoder", parse(f"grid_cnn{options}"), WIDTH, 8).double()
        draw(made, 0)
        return made

    return make


def picture(grid=(ROWS, COLUMNS), rows: int = 1) -> Batch:
    places = torch.ones(rows, ROWS * COLUMNS, dtype=torch.int64)
    one = torch.ones(rows, 1, dtype=torch.int64)
    return Batch((Text(places, None, grid=grid),), one, one, one > 0)


def embedded(rows: int = 1) -> torch.Tensor:
    rng = torch.Generator().manual_seed(1)
    return torch.randn(rows, ROWS * COLUMNS, WIDTH, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_a_state_sees_the_square_around_its_place_and_nothing_else(layers, build):
    encoder, x = build(f"[layers={layers}]"), embedded()
    before = encoder.read(x, None, picture(), Mode()).states[0]
    for place in range(ROWS * COLUMNS):
        changed = x.clone()
        changed[0, place] += 1
        after = encoder.read(changed, None, picture(), Mode()).states[0]
        moved = ((after - before).abs().amax(-1) > 0).view(ROWS, COLUMNS)
        row, column = divmod(place, COLUMNS)
        near_row = (torch.arange(ROWS) - row).abs() <= layers
        near_column = (torch.arange(COLUMNS) - column).abs() <= layers
        assert torch.equal(moved, near_row[:, None] & near_column)


def test_states_and_summary_have_the_width_that_is_announced_and_the_summary_is_the_mean(
    build, near
):
    encoder = build()
    found = encoder.read(embedded(3), None, picture(rows=3), Mode())
    assert found.states.shape == (3, ROWS * COLUMNS, encoder.output_width)
    assert encoder.summary_width == encoder.output_width == 8
    near(found.summary, found.states.mean(1))


def test_a_block_without_weights_changes_nothing(build, near):
    encoder = build("[layers=1]")
    torch.nn.init.zeros_(encoder.blocks.layers[0].weight)
    torch.nn.init.zeros_(encoder.blocks.layers[0].bias)
    x = embedded()
    places = coordinates((ROWS, COLUMNS)).double()[None]
    near(
        encoder.read(x, None, picture(), Mode()).states,
        encoder.enter(torch.cat((x, places), -1)),
    )


def test_coordinates_tell_equal_patches_apart(build):
    x = torch.ones(1, ROWS * COLUMNS, WIDTH, dtype=torch.float64)
    states = build("[layers=0]").read(x, None, picture(), Mode()).states[0]
    assert len(states.unique(dim=0)) == ROWS * COLUMNS
    same = build("[layers=0,coordinates=false]").read(x, None, picture(), Mode()).states[0]
    assert len(same.unique(dim=0)) == 1


def test_coordinates_run_from_minus_one_to_one_row_by_row():
    assert coordinates((2, 3)).tolist() == [[-1, -1], [-1, 0], [-1, 1], [1, -1], [1, 0], [1, 1]]
    assert coordinates((1, 2)).tolist() == [[0, -1], [0, 1]]


def test_what_stands_at_padded_places_changes_no_real_state(build, near):
    encoder, x = build(), embedded()
    mask = torch.ones(1, ROWS * COLUMNS, dtype=torch.bool)
    mask[0, -COLUMNS:] = False
    other = torch.where(mask.unsqueeze(-1), x, 9.0)
    one, two = (encoder.read(y, mask, picture(), Mode()) for y in (x, other))
    near(one.states, two.states)
    near(one.summary, two.summary)
    assert one.states[0, -COLUMNS:].abs().max() == 0


def test_gradients_reach_every_parameter(build):
    encoder = build()
    encoder.read(embedded(), None, picture(), Mode()).states.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


def test_sources_without_rows_and_columns_are_refused(build):
    encoder, x = build(), embedded()
    with pytest.raises(Refused, match="no grid"):
        encoder.read(x, None, picture(grid=None), Mode())
    with pytest.raises(Refused, match="4 by 6 has no 30 positions"):
        encoder.read(x, None, picture(grid=(4, 6)), Mode())
    with pytest.raises(Refused, match="rows and columns"):
        encoder(x, None)
    with pytest.raises(InvalidConfig, match="layers"):
        build("[layers=-1]")


def test_a_task_of_words_is_refused_before_anything_is_built(built):
    with pytest.raises(Refused, match="grid_cnn needs a source that is a picture"):
        built(backbone="rnn_seq2seq[encoder=grid_cnn]")


def test_a_decoder_attends_over_the_places_of_a_picture(built):
    name = "rnn_seq2seq[hidden=16,embedding=8,encoder=grid_cnn[layers=1]]"
    backbone, _, batch = built(task="digit_scenes[evaluate=2]", backbone=name)
    weights = backbone(batch.map(_double), Mode()).weights
    assert weights.shape == (4, batch.targets.shape[1], 36)


def _double(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x
