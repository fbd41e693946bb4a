"""bAbI on an invented mirror: parts, words, what is absent."""

import gzip
import random
import runpy
from pathlib import Path

import pytest

from bench.api.errors import DataUnavailable, InvalidConfig
from tasks.babi import Babi, BabiConfig

SMALL = Path(__file__).parent / "small_mirror" / "babi.py"


@pytest.fixture
def mirror(tmp_path) -> Path:
    runpy.run_path(str(SMALL))["write"](tmp_path, random.Random(0))
    return tmp_path


def make(mirror, **options) -> Babi:
    return Babi(BabiConfig(**options), 0, mirror)


def test_all_tasks_are_learned_together_but_those_without_a_training_part(mirror):
    task = make(mirror)
    assert {row.number for row in task.rows("train")} == set(range(1, 21)) - {3}
    assert {row.number for row in task.rows("test")} == set(range(1, 21)) - {3}
    assert "[3]" in task.notes["left out"]
    assert len(task.rows("train")) + len(task.rows("validation")) == 19 * 40


def test_counts_are_of_each_task(mirror):
    task = make(mirror, subset="short", train=20, test=5)
    assert len(task.rows("test")) == 8 * 5
    assert len(task.rows("train")) == 8 * 18


def test_no_story_is_both_in_training_and_in_validation(mirror):
    """Questions of one story are all kept or all learned from."""
    path = mirror / "babi" / "en-10k" / "qa1_invented_train.txt.gz"
    lines = []
    for story in range(30):
        for question in range(5):
            lines += [f"{2 * question + 1} Ada{story} went to room{question}."]
            lines += [f"{2 * question + 2} Where is she? \troom{question}\t{2 * question + 1}"]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    task = make(mirror, number=1)
    learned, held = ({row.story[0][0] for row in task.rows(p)} for p in ("train", "validation"))
    assert not learned & held
    assert (len(learned), len(held)) == (27, 3)
    assert len(task.rows("validation")) == 15


def test_a_word_of_the_test_alone_is_unknown(mirror):
    path = mirror / "babi" / "en-10k" / "qa1_invented_test.txt.gz"
    text = "1 Ada went to the zeppelin.\n2 Where is Ada? \tzeppelin\t1\n"
    path.write_bytes(gzip.compress(text.encode()))
    task = make(mirror, number=1)
    (row,) = task.rows("test")
    assert "zeppelin" not in task.words.words
    assert row.answer == 3
    assert 3 in row.story[0]


def test_one_task_without_a_training_part_says_so(mirror):
    with pytest.raises(DataUnavailable, match=r"no training questions of \[3\]"):
        make(mirror, number=3)
    with pytest.raises(InvalidConfig, match="number is 1 to 20"):
        make(mirror, number=21)


def test_the_most_frequent_answer_is_counted_by_task_and_first_word(mirror):
    (value,) = make(mirror, number=1).baselines().values()
    assert 0.2 < value < 0.6
