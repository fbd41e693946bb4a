"""The lead of a document: as many first words as summarize best in training."""

import random

import pytest

from tasks.data.word_pairs import WordPair
from tasks.metrics.text_scores import rouge
from tasks.summarization.lead_copy import LeadCopy, LeadCopyConfig
from tasks.summarization.summary_pairs import best_length, references_of


def pair(source: str, target: str, *references: str) -> WordPair:
    return WordPair(tuple(source.split()), tuple(target.split()), references)


def test_a_lead_is_longer_than_a_summary_where_its_words_stand_further_behind():
    pairs = [pair("please read the plan soon", "plan"), pair("here is a list", "list")]
    task = LeadCopy(LeadCopyConfig(evaluate=1), seed=0)
    assert best_length(pairs) == 4
    assert task.lead(pairs, pairs) == pytest.approx(2 / 5)


def test_of_leads_that_are_equally_good_the_shortest_is_taken():
    assert best_length([pair("plan , .", "plan"), pair("", "list")]) == 1
    assert best_length([pair("a b c", "d")]) == best_length([pair("", "d")]) == 1


def test_the_first_reference_of_a_pair_counts_and_not_what_is_learned():
    assert best_length([pair("the new plan", "the", "the new plan", "the")]) == 3


def test_the_length_is_that_of_the_best_rouge_of_every_length():
    drawn = random.Random(3)
    words = ["e-mail", "of", ",", "the", "plan", "Gas", "x_1", "12.5", "-"]
    for _ in range(20):
        pairs = [
            WordPair(
                tuple(drawn.choices(words, k=drawn.randint(1, 9))),
                tuple(drawn.choices(words, k=drawn.randint(1, 4))),
            )
            for _ in range(5)
        ]
        found = [
            rouge([pair.source[:length] for pair in pairs], references_of(pairs))["rouge1"]
            for length in range(1, max(len(pair.source) for pair in pairs) + 1)
        ]
        assert found[best_length(pairs) - 1] == pytest.approx(max(found))
