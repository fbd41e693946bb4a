"""Claims on scores as their predictions say, and on scores that they exclude."""

import random

import pytest

from bench.api import registry
from bench.api.claim import CLAIMS
from bench.claims.cells import cells_of
from bench.claims.verdicts import _outcome
from bench.cli.registered import load_registry
from bench.running.request import Request

load_registry(())


def verdict(key, level, spread=lambda _: 0.005):
    """The verdict where each side has a level, and seeds spread around it.

    Args:
        key: Of the claim.
        level: Side -> mean score.
        spread: Side -> standard deviation over seeds.
    """
    claim = registry.find(CLAIMS, key).target
    draw, values, seeds = random.Random(key), {}, claim.sample
    for side in claim.sides:
        for seed in seeds:
            place = (cells_of(side, Request(), seed).read.id, side.metric, side.split)
            score = level(side) + spread(side) * draw.gauss(0, 1)
            values[(*place, side.axis, side.x)] = score
    return _outcome(claim, values, seeds, Request()).verdict


def of_variant(general, additive):
    return lambda side: general if side.variant == "general" else additive


@pytest.mark.parametrize(
    ("general", "additive", "expected"),
    [(0.15, 0.03, "supported"), (0.03, 0.15, "contradicted"), (0.03, 0.03, "contradicted")],
)
def test_a_score_is_inconsistent_by_its_spread_and_not_by_its_level(general, additive, expected):
    spread = of_variant(general, additive)
    assert verdict("C07", lambda _: 0.8, spread) == expected
    assert verdict("C07", of_variant(0.5, 0.9), spread) == expected


SELECTION = {
    "the selected word is all that counts": ((0.95, 0.3, 1.0), (0.6, 0.5, 1.0), "supported"),
    "soft attention shows as much": ((0.7, 0.3, 1.0), (0.7, 0.3, 1.0), "contradicted"),
    "soft attention leaves no room": ((0.95, 0.3, 1.0), (0.95, 0.3, 1.0), "undecided"),
    "selection shows less": ((0.5, 0.3, 1.0), (0.9, 0.3, 1.0), "contradicted"),
    "the selected word is not needed": ((0.95, 0.9, 1.0), (0.6, 0.5, 1.0), "contradicted"),
    "selection loses accuracy": ((0.8, 0.3, 0.85), (0.6, 0.5, 1.0), "contradicted"),
}


@pytest.mark.parametrize("case", SELECTION)
def test_selected_words_must_suffice_and_be_needed_at_equal_accuracy(case):
    selected, weighed, expected = SELECTION[case]
    metrics = ("kept_accuracy", "removed_accuracy", "label_accuracy")

    def level(side):
        mine = selected if side.variant.startswith("rationale") else weighed
        return mine[metrics.index(side.metric)]

    assert verdict("C17", level) == expected


@pytest.mark.parametrize(
    ("dropped", "repeated", "expected"),
    [
        (0.4, 0.2, "supported"),
        (0.4, 0.0, "supported"),
        (0.0, 0.2, "supported"),
        (-0.2, 0.2, "contradicted"),
        (0.02, 0.02, "contradicted"),
    ],
)
def test_what_is_dropped_or_repeated_must_grow_with_the_length(dropped, repeated, expected):
    def level(side):
        grown = dropped if side.metric == "dropped_content_share" else repeated
        return 0.2 + grown * (side.x > 8)

    assert verdict("C21", level) == expected


@pytest.mark.parametrize(
    ("copied", "visited", "expected"),
    [
        (0.4, 0.0, "supported"),
        (0.4, 0.3, "contradicted"),
        (0.0, 0.0, "contradicted"),
        (-0.3, -0.3, "contradicted"),
    ],
)
def test_many_visits_must_go_with_errors_only_where_none_is_needed(copied, visited, expected):
    def level(side):
        return visited if "rule=fert" in side.task else copied

    assert verdict("C30", level) == expected
