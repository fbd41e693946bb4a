"""What tasks say of test examples that training has seen is what is counted."""

import re

import pytest
import torch

from bench.api import registry
from bench.api.selector import parse
from bench.api.task import SEEN
from bench.training.protocol import read_protocol

STRINGS = {"2 symbols": 256, "4": 59, "6": 1, "8": 1, "12": 0, "16": 0}
COUNTED = {
    "parity": {"6 bits": 0, "12 bits": 250, "18 bits": 0, "24 bits": 0},
    "nesting": {"depth 1": 226, "depth 2": 15, "depth 3": 1, "depth 4": 0, "depth 5": 0},
    "repeat_copy": {"3 symbols": 114, "6": 1, "9": 0, "12": 0},
    "oov_copy": {"3 words": 247, "6": 0, "7": 0, "8": 0},
    "infl": {"the first half of the test": 9, "the second half": 0},
    **dict.fromkeys(("transduction", "string_alignment", "taught_strings"), STRINGS),
}
"""Test examples of each level, of 256, that a quick run of seed 0 has seen."""
CALIBRATED = {"oov_copy": "oov_copy[shortest=2,beyond=8,unknown=0.1]"}
"""Options of a task whose sentence is about another size than that of the preset."""


def texts(batch) -> list[tuple[int, ...]]:
    tokens = batch.sources[0].tokens if batch.sources else batch.inputs
    return [tuple(number for number in row if number) for row in tokens.tolist()]


@pytest.mark.parametrize("name", COUNTED)
def test_strings_of_the_test_that_training_has_seen_are_as_many_as_told(name):
    target = registry.find("task", name).target
    size = target.presets["quick"]
    task = registry.make("task", parse(CALIBRATED.get(name, size.options)), 0)
    protocol = read_protocol(size.protocol)
    stream = task.training(protocol.batch, torch.Generator().manual_seed(0))
    seen = {text for _ in range(protocol.steps) for text in texts(next(stream))}
    found = [sum(text in seen for text in texts(batch)) for batch in task.evaluation("test")]
    assert found == list(COUNTED[name].values())
    told = task.notes[SEEN]
    assert told == target.seen_in_training
    for count in {count for count in found if count not in (0, 256)}:
        assert re.search(rf"\b{count}\b", told), count


@pytest.mark.parametrize(("chains", "one_fact"), [(3, 17), (2, 277)])
def test_questions_of_the_test_that_training_has_seen_are_as_many_as_told(
    chains, one_fact, monkeypatch
):
    # batches of tensors would take most of the time
    monkeypatch.setattr("tasks.reading.chains.question_batch", lambda rows, joined: rows)
    target = registry.find("task", "chains").target
    size = target.presets["quick"]
    task = registry.make("task", parse(f"{size.options}[chains={chains}]"), 0)
    protocol = read_protocol(size.protocol)
    stream = task.training(protocol.batch, torch.Generator().manual_seed(0))
    seen = {story_and_question(row) for _ in range(protocol.steps) for row in next(stream)}
    found = dict.fromkeys((1, 2, 3), 0)
    for row in task.rows("test"):
        found[row.number] += story_and_question(row) in seen
    assert found == {1: one_fact, 2: 0, 3: 0}
    told = task.notes[SEEN]
    assert told == target.seen_in_training
    assert re.search(rf"\b{one_fact}\b", told)


def story_and_question(row) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, (*row.story, row.question)))


@pytest.mark.parametrize(
    "options",
    [
        "transduction[max_length=4,beyond=6,evaluate=32]",
        "transduction[max_length=20,beyond=40]",
        "transduction[rule=copy,between=32,beyond=64]",
        "string_alignment[vocab=16]",
        "string_alignment[beyond=12]",
        "taught_strings[evaluate=32]",
        "nesting[depth=2,deeper=3]",
        "parity[length=12,beyond=48,evaluate=128]",
        "repeat_copy[repeats=3]",
        "oov_copy",
        "infl[syllables=3]",
        "composition[group=s5]",
        "chains[chains=6]",
        "chains[facts=2]",
        "chains[test=300]",
    ],
)
def test_sizes_of_which_the_sentence_does_not_speak_have_no_note(options):
    assert SEEN not in registry.make("task", parse(options), 0).notes


@pytest.mark.parametrize(
    "options",
    [
        "transduction[beyond=10,rule=swap]",
        "transduction[beyond=12,decode=true,rule=copy]",
        "string_alignment[rule=swap]",
        "taught_strings[noise=0.3]",
        "oov_copy[decode=true,shortest=2,unknown=0.1]",
        "chains[joined=true,validate=30]",
    ],
)
def test_options_that_leave_the_strings_as_they_are_leave_the_note(options):
    task = registry.make("task", parse(options), 0)
    assert task.notes[SEEN] == task.seen_in_training


def test_a_shorter_test_has_the_same_strings_up_to_the_length_of_training():
    long, short = (
        registry.make("task", parse(f"transduction[beyond={beyond}]"), 0).evaluation("test")
        for beyond in (16, 10)
    )
    assert [texts(batch) for batch in long[:4]] == [texts(batch) for batch in short[:4]]
