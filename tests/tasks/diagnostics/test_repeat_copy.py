"""Copy and repeat copy."""

import pytest
import torch

from bench.api.errors import InvalidConfig
from tasks.diagnostics.repeat_copy import RepeatCopy, RepeatCopyConfig

FILLER, END = 3, 2


def make(**options) -> RepeatCopy:
    sizes = {"length": 4, "beyond": 7, "repeats": 3, "vocab": 5, "evaluate": 40, **options}
    return RepeatCopy(RepeatCopyConfig(**sizes), seed=1)


def batches(task: RepeatCopy):
    stream = task.training(40, torch.Generator().manual_seed(0))
    return [next(stream), *task.evaluation("validation"), *task.evaluation("test")]


def test_the_answer_is_the_sequence_as_often_as_the_count_says_and_then_an_end():
    counts = set()
    for batch in batches(make()):
        for inputs, targets, mask in zip(
            batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True
        ):
            at = next(place for place, word in enumerate(inputs) if 4 <= word < 7)
            words, count = inputs[:at], inputs[at] - 3
            counts.add(count)
            assert all(7 <= word < 12 for word in words)
            assert inputs[at + 1 :] == [FILLER] * (len(inputs) - at - 1)
            said = [target for target, scored in zip(targets, mask, strict=True) if scored]
            assert said == [*(words * count), END]
            assert mask[:at] == [False] * at
            assert mask[at], "the answer begins where the count is read"
            assert not any(t for t, scored in zip(targets, mask, strict=True) if not scored)
    assert counts == {1, 2, 3}


def test_training_draws_all_lengths_and_the_test_goes_beyond():
    task = make()
    stream = task.training(2, torch.Generator().manual_seed(0))
    longest = {int((next(stream).inputs >= 7).sum(1)[0]) for _ in range(60)}
    assert longest == {1, 2, 3, 4}
    assert [int((b.inputs >= 7).sum(1)[0]) for b in task.evaluation("test")] == [2, 4, 5, 7]


def test_one_repeat_is_plain_copying():
    for batch in batches(make(repeats=1)):
        length = (batch.inputs.shape[1] - 1) // 2
        assert torch.equal(batch.targets[:, length:-1], batch.inputs[:, :length])
        assert (batch.targets[:, -1] == END).all()


def test_chance_is_that_of_the_best_single_word():
    # of 4 + 1, 8 + 1 and 12 + 1 words, three are ends and 24 / 5 are any one symbol
    assert make().chance == pytest.approx(24 / 5 / 27)
    assert make(vocab=100).chance == pytest.approx(3 / 27)


@pytest.mark.parametrize("options", [{"length": 0}, {"beyond": 3}, {"repeats": 0}, {"vocab": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="repeat_copy: "):
        make(**options)
