"""Scores of texts on answers made by hand."""

import math

import pytest

from tasks.metrics.text_scores import (
    bigram_scores,
    bleu,
    edit_distance,
    exact_match,
    most_frequent,
    nearest,
    rouge,
    subtoken_f1,
    unknown_said,
)


def test_exact_match_wants_every_word_in_its_place():
    assert exact_match([("a", "b"), ["b", "a"]], [["a", "b"], ("a", "b")]) == 0.5


def test_edit_distance_counts_insertions_deletions_and_substitutions():
    assert edit_distance([list("abc"), list("ab")], [list("axc"), list("abcd")]) == 1.5


def test_bleu_of_the_reference_is_a_hundred_and_case_counts():
    words = [["def", "f", "(", "x", ")", ":"]]
    value, signature = bleu(words, words)
    assert value == pytest.approx(100.0)
    assert "tok:none" in signature
    assert bleu([["Def", "f", "(", "x", ")", ":"]], words)[0] < 90


def test_bleu_is_lowered_where_less_is_said_than_the_reference_has():
    value, _ = bleu([list("abcd")], [list("abcdef")])
    assert value == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_f1_of_subtokens_ignores_order_and_counts_repetitions_once_each():
    assert subtoken_f1([["name", "get"]], [["get", "name"]]) == 1.0
    assert subtoken_f1([["get", "get"]], [["get", "name"]]) == pytest.approx(0.5)
    assert subtoken_f1([[]], [["get"]]) == 0.0
    assert subtoken_f1([["a"], ["b"]], [["a"], ["c"]]) == 0.5


def test_rouge_knows_words_pairs_and_the_longest_common_row():
    found = rouge([["new", "plan", "for", "gas"]], [[["gas", "new", "plan"]]])
    assert found["rouge1"] == pytest.approx(6 / 7)
    assert found["rouge2"] == pytest.approx(2 / 5)
    assert found["rougeL"] == pytest.approx(4 / 7)


def test_rouge_takes_the_best_of_several_references():
    assert rouge([["gas"]], [[["oil"], ["gas"]]])["rouge1"] == 1.0
    assert rouge([["a"], ["b"]], [[["a"]], [["c"]]])["rouge1"] == 0.5


def test_unknown_words_count_where_they_are_said_anywhere():
    known = {"a", "b"}.__contains__
    (found,) = unknown_said([["x", "a"], ["b"]], [["a", "x"], ["y", "b"]], known)
    assert found.value == 0.5
    assert unknown_said([["a"]], [["a"]], known) == []


def test_repeated_bigrams_and_those_that_the_source_has_not():
    repeated, novel = bigram_scores([["a", "b", "a", "b", "c"]], [["x", "a", "b"]])
    assert (repeated.value, novel.value) == (1 / 4, 2 / 4)
    assert all(scored.value == 0.0 for scored in bigram_scores([["a"]], [["a"]]))


def test_the_nearest_source_shares_the_rarest_words():
    train = [["the", "gas"], ["the", "the", "oil"], ["the", "zebra"]]
    assert nearest(train, [["the", "zebra", "new"], ["oil"]]) == [2, 1]


def test_the_most_frequent_target_is_the_first_of_several_in_the_alphabet():
    assert most_frequent([["b"], ["a"], ["b"], ["a"], ["c"]]) == ("a",)
