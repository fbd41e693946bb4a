"""Adding and multiplication: where markers stand, what is asked, what counts as a success."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.adding import Adding, AddingConfig

SMALL = {"min_length": 20, "max_length": 60, "evaluate": 50}


@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_two_numbers_are_marked_and_both_ends(operation):
    task = Adding(AddingConfig(operation=operation, **SMALL), seed=0)
    for batch in task.evaluation("test"):
        numbers, markers = batch.sources[0].frames.unbind(-1)
        mask = batch.sources[0].mask
        assert ((markers == 1).sum(1) == 2).all()
        assert ((markers == -1).sum(1) == 2).all()
        assert (markers[:, 0] == -1).all()
        last = mask.sum(1) - 1
        assert (markers[torch.arange(50), last] == -1).all()
        assert not numbers[~mask].any()
        low = -1 if operation == "add" else 0
        assert low <= numbers.min() < numbers.max() <= 1
        one, other = numbers[markers == 1].view(50, 2).unbind(1)
        expected = 0.5 + (one + other) / 4 if operation == "add" else one * other
        torch.testing.assert_close(batch.values[:, 0, 0], expected)
        torch.testing.assert_close(batch.gold[:, 0] * 2, (markers == 1).float())


def test_lengths_go_from_t_to_a_tenth_more():
    task = Adding(AddingConfig(min_length=50, max_length=50, evaluate=300), seed=0)
    lengths = task.evaluation("test")[0].sources[0].mask.sum(1)
    assert (int(lengths.min()), int(lengths.max())) == (50, 55)
    assert Adding(AddingConfig(**SMALL), seed=0).lengths() == [20, 29, 42, 60]


def test_lengths_that_are_near_each_other_are_fewer_than_four():
    near = Adding(AddingConfig(min_length=20, max_length=22, evaluate=1), seed=0)
    assert near.lengths() == [20, 21, 22]
    assert len(near.evaluation("test")) == 3


def test_an_error_below_four_hundredths_is_a_success():
    task = Adding(AddingConfig(**SMALL), seed=0)
    batches = task.evaluation("test")
    for off, share in ((0.039, 1.0), (-0.041, 0.0)):
        answers = [Answer(batch, values=batch.values + off) for batch in batches]
        found = task.score("test", answers)
        plain = {s.metric: s.value for s in found if not s.axis}
        assert plain["success_accuracy"] == share
        assert plain["mse"] == pytest.approx(off**2, rel=1e-3)
        assert [s.x for s in found if s.axis == "length"] == [20, 29, 42, 60]


def test_the_mean_answer_is_seldom_right():
    assert 0.05 < Adding(AddingConfig(), seed=0).baselines()["training mean"] < 0.25


def test_lengths_that_make_no_sense_are_refused():
    with pytest.raises(InvalidConfig, match="min_length <= max_length"):
        AddingConfig(min_length=30, max_length=20)
