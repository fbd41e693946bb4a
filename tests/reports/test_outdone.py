"""Of tied variants, who is ahead of another one in no seed comes last."""

from types import SimpleNamespace

import pytest

from reports.outdone import outdone

SEEDS = range(5)


def seeds(*values):
    return dict(zip(SEEDS, values, strict=True))


def comparison(scores, *, better="higher", margin=0.05, parts=None, trained_to=24.0):
    """What `outdone` asks of a comparison."""
    divided = {"length": ["token_accuracy"]} if parts else {}
    return SimpleNamespace(
        task="offset",
        metric="token_accuracy",
        better=better,
        scores=scores,
        ranked_by=SimpleNamespace(margin=margin),
        catalog=SimpleNamespace(task=lambda task: SimpleNamespace(trained_to=trained_to)),
        stored=SimpleNamespace(divided=lambda: divided, parts=lambda metric, axis: parts),
    )


EXACT = seeds(1.0, 1.0, 1.0, 1.0, 1.0)
LESS = seeds(0.92, 0.95, 0.99, 0.94, 0.93)
MIXED = seeds(0.99, 0.9, 1.0, 0.95, 1.0)


def test_who_is_below_another_in_every_seed_is_outdone():
    found = comparison({"exact": EXACT, "less": LESS})
    assert outdone(found, "less", ["exact", "less"])
    assert not outdone(found, "exact", ["exact", "less"])
    assert not outdone(found, "less", ["less"])


def test_less_is_better_where_the_metric_says_so():
    found = comparison({"exact": EXACT, "less": LESS}, better="lower")
    assert outdone(found, "exact", ["less"])
    assert not outdone(found, "less", ["exact"])


def test_one_seed_ahead_is_enough_to_stay():
    found = comparison({"less": LESS, "mixed": MIXED})
    assert not outdone(found, "less", ["mixed"])
    assert not outdone(found, "mixed", ["less"])


def test_an_equal_seed_does_not_save_who_is_behind_in_the_others():
    behind = {**LESS, 2: 1.0}
    assert outdone(comparison({"exact": EXACT, "behind": behind}), "behind", ["exact"])
    assert not outdone(comparison({"exact": EXACT, "twin": EXACT}), "twin", ["exact"])


@pytest.mark.parametrize(("margin", "expected"), [(0.05, False), (0.0001, True), (None, True)])
def test_a_difference_within_the_margin_does_not_count(margin, expected):
    close = seeds(0.999, 0.9985, 0.9988, 0.999, 0.9987)
    found = comparison({"exact": EXACT, "close": close}, margin=margin)
    assert outdone(found, "close", ["exact"]) == expected


def test_the_longest_inputs_count_where_training_had_shorter_ones():
    parts = {
        ("exact", 24.0): EXACT,
        ("far", 24.0): EXACT,
        ("exact", 96.0): seeds(0.3, 0.4, 0.35, 0.4, 0.3),
        ("far", 96.0): EXACT,
    }
    scores = {"exact": EXACT, "far": EXACT}
    assert outdone(comparison(scores, parts=parts), "exact", ["far"])
    assert not outdone(comparison(scores, parts=parts), "far", ["exact"])
    assert not outdone(comparison(scores, parts=parts, trained_to=96.0), "exact", ["far"])
    assert not outdone(comparison(scores, parts=parts, trained_to=None), "exact", ["far"])


def test_one_seed_says_nothing():
    found = comparison({"exact": {0: 1.0}, "less": {0: 0.5}})
    assert not outdone(found, "less", ["exact"])
