"""Baselines of generated strings: counted by hand, and what they can and cannot do."""

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch, Text
from bench.api.options import canonical
from bench.api.selector import parse
from tasks.data.string_baselines import id_pairs, most_frequent_answer, string_baselines

EOS = 2
WITHOUT_NETWORK = {
    "recall": ("most frequent answer", "first value read"),
    "offset": ("most frequent answer", "copy the input"),
    "after_marker": ("most frequent answer", "most frequent symbol of the text"),
}
STRINGS = ("most frequent target", "copy the source", "nearest source", "word for word")


def made(text):
    return registry.make("task", canonical("task", parse(text)), 1)


def batch(pairs, extended=None):
    """Strings of one length, with EOS."""
    source, target = (
        torch.tensor([[*row, EOS] for row in rows]) for rows in zip(*pairs, strict=True)
    )
    ones = torch.ones_like(target, dtype=torch.bool)
    own = None if extended is None else torch.tensor([[*row, EOS] for row in extended])
    return Batch((Text(source, None),), inputs=target, targets=target, mask=ones, extended=own)


def test_each_baseline_of_strings_is_what_a_person_would_count():
    train = batch([([4, 5], [6, 7]), ([4, 5], [6, 7]), ([5, 4], [7, 5])])
    test = batch([([4, 5], [6, 7]), ([5, 4], [7, 6]), ([6, 6], [6, 6]), ([5, 5], [6, 7])])
    found = string_baselines(train, [test])
    # three tokens a string with its EOS: 6 7 is right twice, and its 6 in 6 6
    assert found["most frequent target"] == pytest.approx(7 / 12), "6 7, twice in training"
    assert found["copy the source"] == 3 / 12, "6 6"
    assert found["word for word"] == 9 / 12, "4 is 6, 5 is 7, and 6 was never seen"


def test_a_baseline_of_strings_is_the_mean_over_lengths():
    train = batch([([4, 5], [4, 5]), ([5, 4], [5, 4])])
    short, long = batch([([4], [4])]), batch([([4, 4, 4], [5, 5, 5])])
    assert string_baselines(train, [short, long])["copy the source"] == 1 / 2


def test_unknown_words_are_copied_as_their_own_and_counted_as_one():
    pairs, own = [([3, 4], [20, 5]), ([4, 3], [5, 21])], [[20, 4], [4, 21]]
    unknown = batch(pairs, own)
    assert id_pairs(unknown)[0] == ([3, 4, EOS], [20, 5, EOS])
    assert id_pairs(unknown, own=True)[0] == ([20, 4, EOS], [20, 5, EOS])
    assert string_baselines(unknown, [unknown])["word for word"] == pytest.approx(4 / 6), (
        "20 for all"
    )


def test_the_most_frequent_answer_is_counted_where_something_is_asked():
    train, test = batch([([1, 1], [8, 9]), ([1, 1], [8, 8])]), batch([([1, 1], [8, 9])])
    assert most_frequent_answer(train, test) == pytest.approx(1 / 3), "8, of 8 9 EOS"


@pytest.mark.parametrize("name", WITHOUT_NETWORK)
def test_diagnostics_have_baselines_near_what_their_rule_gives(name):
    task = made(name)
    found = task.baselines()
    assert tuple(found) == WITHOUT_NETWORK[name]
    assert found == made(name).baselines()
    assert 0 < found["most frequent answer"] < 2 * task.chance


def test_a_baseline_of_recall_knows_one_of_the_values_that_were_told():
    # one of 6 or 8 values beyond training, and 1 of 16 by chance
    told = made("recall[pairs=4]").baselines()["first value read"]
    assert told == pytest.approx((1 / 6 + 1 / 8) / 2 * (1 - 1 / 16) + 1 / 16, abs=0.03)


def test_copying_what_asks_solves_no_offset_but_by_chance():
    found = made("offset[vocab=4]").baselines()["copy the input"]
    assert found == pytest.approx(1 / 4, abs=0.05)


def test_symbols_without_places_name_the_word_after_a_marker_more_often_than_chance():
    task = made("after_marker")
    assert 2 * task.chance < task.baselines()["most frequent symbol of the text"] < 0.4


@pytest.mark.parametrize(
    ("text", "copied", "counted"),
    [
        ("transduction[rule=copy]", 1.0, 1.0),
        ("transduction[rule=dict]", 0.0, 1.0),
        ("transduction[rule=reverse]", 0.0, 0.0),
        ("oov_copy", 0.04, 0.23),  # up to the first known word, and up to a wrong unknown one
        ("oov_copy[unknown=0]", 0.0, 1.0),
    ],
)
def test_strings_are_solved_with_non_neural_baselines_where_the_rule_says_so(text, copied, counted):
    found = made(text).baselines()
    assert tuple(found) == STRINGS
    assert found["copy the source"] == pytest.approx(copied, abs=0.04)
    assert found["word for word"] == pytest.approx(counted, abs=0.03)


def prefix(length, right):
    """Correct prefix where each word is right this often, and the end after right words."""
    return (sum(right**n for n in range(1, length + 1)) + right**length) / (length + 1)


def test_one_number_for_all_unknown_words_is_right_about_once_in_a_string():
    task = made("oov_copy")
    beyond = task.evaluation("test")[2:]
    lengths = [batch.targets.shape[1] - 1 for batch in beyond]
    assert lengths == [9, 12]
    known = next(made("oov_copy[unknown=0]").training(512, torch.Generator().manual_seed(0)))
    dictionary = string_baselines(known, beyond)["word for word"]
    expected = [sum(prefix(n, 0.7 + 0.3 * once / n) for n in lengths) / 2 for once in (0, 1)]
    assert dictionary == pytest.approx(expected[0], abs=0.03)
    gained = task.baselines()["word for word"] - dictionary
    assert gained == pytest.approx(expected[1] - expected[0], abs=0.01)
    assert expected[1] - expected[0] == pytest.approx(0.029, abs=0.001)
