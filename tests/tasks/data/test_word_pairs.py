"""Pairs of words: unknown words have ids of their own row, and come back as words."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.config import Config
from bench.api.errors import InvalidConfig
from tasks.data.word_pairs import WordPair, WordPairs
from tasks.data.words import EOS, UNK, Vocabulary

TRAIN = [WordPair(("a", "b"), ("b",)), WordPair(("b", "a", "a"), ("a", "b"))]
TEST = [
    WordPair(("x", "a", "y", "x"), ("y", "x", "q")),
    WordPair(("a",), ("a",), ("a of old", "b")),
]


def make() -> WordPairs:
    task = WordPairs(Config(), 0)
    sides = [side for pair in TRAIN for side in (pair.source, pair.target)]
    parts = {"train": TRAIN, "validation": TEST, "test": TEST}
    task.settle(parts, Vocabulary.count(sides))
    return task


def test_unknown_words_of_a_source_are_unk_to_the_network_and_have_ids_to_be_copied():
    task = make()
    (batch,) = task.evaluation("test")
    known = len(task.vocabulary)
    assert batch.sources[0].tokens[1].tolist() == [UNK, task.vocabulary.encode(["a"])[0], UNK, 3, 2]
    assert batch.extended[1].tolist()[::2] == [known, known + 1, EOS]
    assert batch.targets[1].tolist() == [known + 1, known, UNK, EOS]
    assert batch.extra_words == ((), ("x", "y"))
    assert batch.num_extra == 2
    assert int(batch.inputs.max()) < known


def test_what_is_said_comes_back_as_words_with_the_names_of_its_own_row():
    task = make()
    (batch,) = task.evaluation("test")
    known = len(task.vocabulary)
    said = ((known, EOS + 2), (known + 1, known, UNK))
    first, second = task.said([Answer(batch, generated=said)])
    assert first.source[0] == "<unk>", "a row without unknown words has no such id"
    assert second == WordPair(("y", "x", "<unk>"), ("y", "x", "q"))


def test_several_references_stand_on_lines_and_the_first_one_is_the_target():
    task = make()
    (batch,) = task.evaluation("test")
    assert batch.references[0] == "a of old\nb"
    (first, _) = task.said([Answer(batch, generated=((), ()))])
    assert first.target == ("a", "of", "old")


def test_a_part_without_pairs_names_the_option_that_left_them_out():
    parts = {"train": TRAIN, "validation": [], "test": []}
    with pytest.raises(InvalidConfig, match="x: y=1 leaves no pair in validation, test; ask for m"):
        WordPairs(Config(), 0).settle(parts, Vocabulary(["a"]), limit="x: y=1")


def test_training_shows_every_pair_once_an_epoch_and_padding_is_masked():
    task = make()
    stream = task.training(2, torch.Generator().manual_seed(0))
    batch = next(stream)
    assert sorted(batch.mask.sum(1).tolist()) == [2, 3]
    assert sorted(batch.sources[0].mask.sum(1).tolist()) == [3, 4]
    assert not batch.targets[~batch.mask].any()
