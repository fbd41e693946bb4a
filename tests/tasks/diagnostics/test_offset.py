"""The token some places back."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.offset import Offset, OffsetConfig


def make(**options) -> Offset:
    sizes = {"back": 2, "length": 6, "beyond": 11, "vocab": 5, "evaluate": 20, **options}
    return Offset(OffsetConfig(**sizes), seed=1)


def test_each_answer_is_the_token_back_places_before_and_the_first_ones_are_not_scored():
    task = make()
    stream = task.training(20, torch.Generator().manual_seed(0))
    lengths = []
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        lengths.append(batch.inputs.shape[1])
        assert batch.sources == ()
        for inputs, targets, mask in zip(
            batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True
        ):
            assert all(4 <= word < 9 for word in inputs)
            assert targets == [0, 0, *inputs[:-2]]
            assert mask == [False, False, *[True] * (len(inputs) - 2)]
    assert lengths == [6, 6, 3, 6, 8, 11]


def test_the_plain_score_is_that_of_the_training_length():
    task = make()
    answers = [
        Answer(batch, predicted=batch.targets if batch.inputs.shape[1] == 6 else batch.inputs * 0)
        for batch in task.evaluation("test")
    ]
    found = task.score("test", answers)
    assert {s.metric: s.value for s in found if not s.axis} == {
        "token_accuracy": 1.0,
        "sequence_accuracy": 1.0,
    }
    curve = {s.x: s.value for s in found if s.axis and s.metric == "token_accuracy"}
    assert curve == {3.0: 0.0, 6.0: 1.0, 8.0: 0.0, 11.0: 0.0}
    assert task.chance == pytest.approx(1 / 5)


@pytest.mark.parametrize("options", [{"back": 6}, {"back": 0}, {"beyond": 5}, {"vocab": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="offset: "):
        make(**options)
