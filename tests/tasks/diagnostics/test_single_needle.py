"""One key and its value in a long text."""

from itertools import pairwise

import pytest
import torch

from bench.api.errors import InvalidConfig
from tasks.diagnostics.single_needle import MARK, SENTENCE, SingleNeedle, SingleNeedleConfig

SETTINGS = [
    {"haystack": "repeated"},
    {"haystack": "varied"},
    {"haystack": "varied", "value": 3},
    {"haystack": "varied", "value": 2, "distractors": 2},
]


def make(**options) -> SingleNeedle:
    sizes = {"length": 32, "beyond": 64, "vocab": 10, "evaluate": 20, **options}
    return SingleNeedle(SingleNeedleConfig(**sizes), seed=1)


def rows(task):
    stream = task.training(20, torch.Generator().manual_seed(0))
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        found = (batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist())
        yield from zip(*found, strict=True)


@pytest.mark.parametrize("options", SETTINGS)
def test_the_value_of_the_one_needle_with_the_key_at_the_end_is_asked_for(options):
    task = make(**options)
    size = task.config.value
    for row, targets, mask in rows(task):
        asked, room = row[-size:][0], len(row) - size - 1
        marks = [at for at, word in enumerate(row[:room]) if word == MARK]
        assert len(marks) == task.config.distractors + 1
        assert row[room] == MARK
        needles = {row[at + 1]: row[at + 2 : at + 2 + size] for at in marks}
        assert len(needles) == len(marks), "every needle has a key of its own"
        assert targets == [0] * (len(row) - size) + needles[asked]
        assert row[room + 2 :] == needles[asked][:-1]
        assert mask == [False] * (len(row) - size) + [True] * size


@pytest.mark.parametrize("options", SETTINGS)
def test_needles_never_cover_each_other_and_stand_anywhere(options):
    task = make(**options)
    whole, begins = task.config.value + 2, set()
    for row, _, _ in rows(task):
        room = len(row) - task.config.value - 1
        marks = [at for at, word in enumerate(row[:room]) if word == MARK]
        assert all(b - a >= whole for a, b in pairwise(marks))
        assert marks[-1] + whole <= room
        begins |= {at for at in marks if len(row) == 32}
    assert len(begins) > 20


def test_a_repeated_haystack_says_one_sentence_again_and_again():
    task = make(haystack="repeated")
    for row, _, _ in rows(task):
        at, room = row.index(MARK), len(row) - 2
        for place in range(room):
            if place + SENTENCE < room and not {place, place + SENTENCE} & {*range(at, at + 3)}:
                assert row[place] == row[place + SENTENCE]


def test_a_varied_haystack_holds_keys_and_values_like_those_of_needles():
    task = make()
    words = {word for row, _, _ in rows(task) for word in row}
    assert words == {MARK, *range(MARK + 1, MARK + 11)}
    assert all(target < MARK or target > MARK + 5 for _, row, _ in rows(task) for target in row)


@pytest.mark.parametrize(
    "options",
    [
        {"length": 7},
        {"value": 9},
        {"value": 0},
        {"distractors": 5, "length": 64},
        {"beyond": 31},
        {"evaluate": 0},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="single_needle: "):
        make(**options)
