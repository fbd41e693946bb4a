"""Relations of scenes follow natural logic."""

import random

import pytest

from tasks.data.scenes import Scene, draw, relation, rephrased, vocabulary


def scene(text: str) -> Scene:
    """`quantifier agent verb thing`, colors joined to nouns with a dash, a place behind."""
    quantifier, agent, verb, thing, *place = text.split()
    who, what = (word.rpartition("-") for word in (agent, thing))
    return Scene(
        quantifier=quantifier,
        agent=who[2],
        agent_color=who[0],
        verb=verb,
        thing=what[2],
        thing_color=what[0],
        place=place[0] if place else "",
    )


CASES = [
    ("a red-dog sells saw garden", "a animal sells tool", "entailment"),
    ("a animal sells saw", "a dog sells saw", "neutral"),
    ("a dog sells saw", "a cat sells saw", "contradiction"),
    ("a red-dog sells blue-saw", "a blue-dog sells red-saw", "contradiction"),
    ("no animal sells tool", "no red-dog sells saw", "entailment"),
    ("no dog sells saw", "no animal sells saw", "neutral"),
    ("every animal sells saw", "every dog sells tool", "entailment"),
    ("every dog sells saw", "every animal sells saw", "neutral"),
    ("every dog sells saw", "a dog sells tool", "entailment"),
    ("every animal sells saw", "no dog buys saw", "entailment"),
    ("every animal sells saw", "no dog sells tool", "contradiction"),
    ("a dog sells saw", "no animal sells tool", "contradiction"),
    ("a dog sells saw", "every dog sells saw", "neutral"),
    ("a dog sells saw", "every animal buys saw", "contradiction"),
    ("no dog sells tool", "a dog sells saw", "contradiction"),
    ("no dog sells tool", "every dog sells saw", "contradiction"),
]


@pytest.mark.parametrize(("premise", "hypothesis", "label"), CASES)
def test_relations_are_those_of_natural_logic(premise, hypothesis, label):
    assert relation(scene(premise), scene(hypothesis)) == label


def test_other_words_of_the_same_meaning_are_entailed_both_ways():
    rng = random.Random(0)
    for _ in range(100):
        one = draw(rng)
        two = rephrased(one, rng)
        assert relation(one, two) == relation(two, one) == "entailment"


def test_every_word_is_in_the_vocabulary_once():
    words = vocabulary()
    assert len(words) == len(set(words))
    rng = random.Random(1)
    assert all(set(draw(rng).words()) <= set(words) for _ in range(200))
