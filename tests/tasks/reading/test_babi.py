"""bAbI on an invented directory: parts, words, what is absent."""

import gzip
import os
import random
import runpy
from pathlib import Path

import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import DataUnavailable, InvalidConfig
from bench.api.selector import parse
from tasks.reading.babi import Babi, BabiConfig
from tasks.reading.stories import question_epochs

REAL = os.environ.get("BENCH_DATA_DIR", "")
SMALL = Path(__file__).parents[1] / "small_data" / "babi.py"


@pytest.fixture
def directory(tmp_path) -> Path:
    runpy.run_path(str(SMALL))["write"](tmp_path, random.Random(0))
    return tmp_path


def make(directory, **options) -> Babi:
    return Babi(BabiConfig(**options), 0, directory)


def test_all_tasks_are_learned_together_but_those_without_a_training_part(directory):
    task = make(directory)
    assert {row.number for row in task.rows("train")} == set(range(1, 21)) - {3}
    assert {row.number for row in task.rows("test")} == set(range(1, 21)) - {3}
    assert "[3]" in task.notes["left out"]
    assert len(task.rows("train")) + len(task.rows("validation")) == 19 * 40


def test_counts_are_of_each_task(directory):
    task = make(directory, subset="short", train=20, test=5)
    assert len(task.rows("test")) == 8 * 5
    assert len(task.rows("train")) == 8 * 18


def test_no_story_is_both_in_training_and_in_validation(directory):
    """Questions of one story are all kept or all learned from."""
    path = directory / "babi" / "en-10k" / "qa1_invented_train.txt.gz"
    lines = []
    for story in range(30):
        for question in range(5):
            lines += [f"{2 * question + 1} Ada{story} went to room{question}."]
            lines += [f"{2 * question + 2} Where is she? \troom{question}\t{2 * question + 1}"]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    task = make(directory, number=1)
    learned, held = ({row.story[0][0] for row in task.rows(p)} for p in ("train", "validation"))
    assert not learned & held
    assert (len(learned), len(held)) == (27, 3)
    assert len(task.rows("validation")) == 15


def test_a_word_of_the_test_alone_is_unknown(directory):
    path = directory / "babi" / "en-10k" / "qa1_invented_test.txt.gz"
    text = "1 Ada went to the zeppelin.\n2 Where is Ada? \tzeppelin\t1\n"
    path.write_bytes(gzip.compress(text.encode()))
    task = make(directory, number=1)
    (row,) = task.rows("test")
    assert "zeppelin" not in task.words.words
    assert row.answer == 3
    assert 3 in row.story[0]


def test_one_task_without_a_training_part_says_so(directory):
    with pytest.raises(DataUnavailable, match=r"no training questions of \[3\]"):
        make(directory, number=3)
    with pytest.raises(InvalidConfig, match="number is 1 to 20"):
        make(directory, number=21)


def test_the_most_frequent_answer_is_counted_by_task_and_first_word(directory):
    (value,) = make(directory, number=1).baselines().values()
    assert 0.2 < value < 0.6


@pytest.mark.parametrize(("stories", "empty"), [(1, "train"), (11, "validation")])
def test_stories_that_leave_a_part_without_questions_are_refused(directory, stories, empty):
    path = directory / "babi" / "en-10k" / "qa1_invented_train.txt.gz"
    asked = "2 Where is Ada? \tattic\t1\n"
    asked_of = range(1) if empty == "train" else range(1, 10)
    lines = ["1 Ada went to the attic.\n" + asked * (n in asked_of) for n in range(stories)]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    with pytest.raises(InvalidConfig, match=f"babi: train=5 leaves no question in {empty}, "):
        make(directory, number=1, train=5)


def test_no_questions_are_no_epoch():
    with pytest.raises(InvalidConfig, match="no questions to train on"):
        next(question_epochs([], 4, torch.Generator(), joined=False))


def test_fewer_questions_than_asked_for_are_noted(directory):
    assert make(directory, subset="short", train=50, test=25).notes["fewer rows"] == (
        "320 of 400 in train, 160 of 200 in test"
    )
    assert "fewer rows" not in make(directory, subset="short", train=40, test=20).notes


STORY = ("Ada went to the attic.", "Bo went to the barn.")


def write_first_task(directory, train, test):
    """Stories of two sentences and a question, in the place of the first task."""
    for part, asked in (("train", train), ("test", test)):
        lines = [
            f"1 {STORY[0]}\n2 {STORY[1]}\n3 {question} \t{answer}\t1\n"
            for question, answer in asked
        ]
        path = directory / "babi" / "en-10k" / f"qa1_invented_{part}.txt.gz"
        path.write_bytes(gzip.compress("".join(lines).encode()))


def test_questions_that_training_has_are_counted_and_the_others_scored_alone(directory):
    held = ("Who is held?", "attic")  # every tenth one, the first included, is for validation
    told = ("Where is Ada?", "attic")
    write_first_task(directory, [held, told, told], [told, held, ("Where is Bo?", "barn")])
    task = make(directory, number=1)
    assert task.notes["seen in training"] == "validation: none; test: 1 of 3 of task 1"
    assert [row.seen for row in task.rows("test")] == [True, False, False]
    (rows,), (batch,) = task.in_batches("test"), task.evaluation("test")
    # right where training has the question, and once where it has not
    right = torch.tensor([[row.seen or row.answer == 3] for row in rows])
    said = torch.where(right, batch.targets, 0)
    found = {s.metric: s.value for s in task.score("test", [Answer(batch, predicted=said)])}
    missed = sum(not one for one in right[:, 0].tolist())
    assert found["error_proportion"] == pytest.approx(missed / 3)
    assert found["unseen_error_proportion"] == pytest.approx(missed / 2)
    assert 0 < missed < 3


def test_the_same_question_about_another_story_was_not_seen(directory):
    write_first_task(directory, [("Where is Ada?", "attic")] * 3, [("Where is Ada?", "attic")])
    path = directory / "babi" / "en-10k" / "qa1_invented_test.txt.gz"
    text = gzip.decompress(path.read_bytes()).replace(b"attic.", b"barn.")
    path.write_bytes(gzip.compress(text))
    assert "test: none" in make(directory, number=1).notes["seen in training"]


def test_how_many_of_the_twenty_tasks_are_learned_is_told(directory):
    assert make(directory, subset="short").notes["tasks"] == (
        "8 of 20 tasks: 1, 4, 6, 9, 10, 12, 15, 20"
    )
    assert make(directory).notes["tasks"].startswith("19 of 20 tasks: 1, 2, 4")
    assert "8 of 20 tasks with `subset=short`" in registry.find("task", "babi").title


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR names no directory of real data")
def test_of_the_real_stories_training_has_as_many_as_is_told():
    quick = parse(Babi.presets["quick"].options)
    task = registry.make("task", quick, 0, Path(REAL))
    told = "28 of 250 of task 4, 30 of 250 of task 20"
    assert task.notes["seen in training"].endswith(f"test: {told}")
    assert told.replace(", ", " and ") in Babi.seen_in_training
    every = registry.make("task", parse("babi[number=4]"), 0, Path(REAL))
    assert "test: 714 of 1000 of task 4" in every.notes["seen in training"]
    assert "714 of 1000 of task 4" in Babi.seen_in_training
