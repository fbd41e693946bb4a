"""Associative recall: what is asked was said before, and nothing else is scored."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.recall import Recall, RecallConfig

FILLER = 3


def make(**options) -> Recall:
    sizes = {"pairs": 3, "vocab": 10, "more_pairs": 5, "evaluate": 30, **options}
    return Recall(RecallConfig(**sizes), seed=1)


def batches(task: Recall):
    stream = task.training(30, torch.Generator().manual_seed(0))
    return [next(stream), *task.evaluation("validation"), *task.evaluation("test")]


def test_every_key_is_asked_once_and_answered_with_its_own_value():
    task = make()
    seen_pairs = set()
    for batch in batches(task):
        assert batch.sources == ()
        for inputs, targets, mask in zip(
            batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True
        ):
            pairs = len(inputs) // 4
            seen_pairs.add(pairs)
            keys, values = inputs[0 : 2 * pairs : 2], inputs[1 : 2 * pairs : 2]
            assert len(set(keys)) == pairs, "keys are distinct"
            assert all(4 <= key < 9 for key in keys)
            assert all(9 <= value < 14 for value in values)
            told = dict(zip(keys, values, strict=True))
            asked = [place for place in range(len(inputs)) if mask[place]]
            assert all(place >= 2 * pairs for place in asked)
            assert sorted(inputs[place] for place in asked) == sorted(keys)
            assert all(targets[place] == told[inputs[place]] for place in asked)
            rest = [place for place in range(2 * pairs, len(inputs)) if not mask[place]]
            assert [inputs[place] for place in rest] == [FILLER] * len(rest)
            assert not any(targets[place] for place in range(len(inputs)) if not mask[place])
    assert seen_pairs == {1, 3, 4, 5}


def test_questions_stand_at_any_place_and_in_any_order():
    batch, *_ = make(evaluate=300).evaluation("validation")
    assert batch.mask[:, :6].sum() == 0
    assert (batch.mask[:, 6:].float().mean(0) - 0.5).abs().max() < 0.15
    keys = batch.inputs[:, 0:6:2]
    asked = batch.inputs[batch.mask].view(-1, 3)
    assert 0.05 < (asked == keys).all(1).float().mean() < 0.35


def test_the_plain_score_is_that_of_the_training_difficulty():
    task = make()
    answers = []
    for batch in task.evaluation("test"):
        exact = batch.inputs.shape[1] == 12
        answers.append(Answer(batch, predicted=batch.targets if exact else batch.targets + 1))
    found = task.score("test", answers)
    plain = {s.metric: s.value for s in found if not s.axis}
    assert plain == {"token_accuracy": 1.0, "sequence_accuracy": 1.0}
    curve = {s.x: s.value for s in found if s.axis and s.metric == "token_accuracy"}
    assert curve == {4.0: 0.0, 12.0: 1.0, 16.0: 0.0, 20.0: 0.0}
    assert task.chance == pytest.approx(1 / 5), "one of five values"
    headline = task.headline.beyond(found, task.trained_to)
    assert [(s.metric, s.value) for s in headline] == [("beyond_training_token_accuracy", 0.0)]


def test_validation_has_the_numbers_of_pairs_that_rank():
    shapes = [tuple(batch.inputs.shape) for batch in make().evaluation("validation")]
    assert shapes == [(30, 12), (15, 16), (15, 20)]


@pytest.mark.parametrize("options", [{"gap": 0}, {"pairs": 5}, {"more_pairs": 6}, {"evaluate": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="recall: "):
        make(**options)
