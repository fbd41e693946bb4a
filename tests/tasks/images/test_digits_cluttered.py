"""A digit among pieces: where it is, and that it can be found."""

import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.data.digits import load_digits


def made(options: str = "", seed: int = 0):
    return registry.make("task", parse(f"digits_cluttered{options}"), seed)


def canvases(task, batch) -> torch.Tensor:
    rows = range(len(batch.targets))
    return torch.stack([torch.tensor(task.picture(batch, row).gray) for row in rows])


def test_without_pieces_the_canvas_holds_the_digit_and_nothing_else():
    task = made("[pieces=0]")
    batch = task.evaluation("test")[0]
    ink = load_digits("test").images[: len(batch.targets)].sum((1, 2))
    assert torch.allclose(canvases(task, batch).sum((1, 2)), ink)
    assert torch.equal(batch.targets[:, 0] - 4, load_digits("test").labels[: len(ink)])


def test_gold_is_the_square_of_the_digit_whatever_lies_beside():
    task = made("[canvas=24,pieces=8]")
    batch = task.evaluation("validation")[0]
    pictures, images = canvases(task, batch), load_digits("validation").images
    for row in range(10):
        windows = pictures[row].unfold(0, 8, 1).unfold(1, 8, 1)
        where = (windows - images[row]).abs().amax((2, 3)).eq(0).nonzero()
        assert len(where) == 1, "the digit is whole and stands once"
        top, left = where[0].tolist()
        gold = batch.gold[row, 0].view(12, 12)
        assert gold.sum() == pytest.approx(1.0)
        expected = torch.zeros(24, 24)
        expected[top : top + 8, left : left + 8] = 1 / 64
        assert torch.allclose(gold, expected.view(12, 2, 12, 2).sum((1, 3)))


def test_pictures_that_are_shown_are_the_same_for_every_seed():
    one, other = made(seed=1), made(seed=2)
    shown = [task.examples().sources[0].frames for task in (one, other)]
    assert torch.equal(*shown)
    drawn = [task.evaluation("test")[0].sources[0].frames for task in (one, other)]
    assert not torch.equal(*drawn)


def test_weights_on_the_digit_count_as_a_match():
    task = made()
    batch = task.evaluation("test")[0]
    answer = Answer(batch, predicted=batch.targets, weights=batch.gold)
    found = {s.metric: s.value for s in task.score("test", [answer])}
    assert (found["label_accuracy"], found["alignment_match"]) == (1.0, 1.0)


@pytest.mark.parametrize("options", ["[canvas=8]", "[patch=5]", "[pieces=-1]"])
def test_impossible_canvases_are_refused(options):
    with pytest.raises(InvalidConfig, match="digits_cluttered"):
        made(options)


@pytest.mark.slow
def test_attention_learns_to_find_the_digit_among_the_pieces():
    task = "digits_cluttered[pieces=4]"
    request = Request(preset="quick", training="adam[lr=0.003,steps=500,evaluate_every=500]")
    cell = quality_cell(request, resolve("scaled_dot"), DefaultTask(task=task), 0).cell
    rows = train_cell(cell).rows
    found = {
        row.metric: row.value
        for row in rows
        if row.split == "test" and not (row.axis or row.baseline)
    }
    near = made("[pieces=4]").baselines()["3 nearest neighbors"]
    assert found["label_accuracy"] > near + 0.2
    assert found["alignment_match"] > 0.6
