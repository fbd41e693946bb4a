"""Which of several tied variants is ahead of another one in no seed."""

import math
from collections.abc import Mapping, Sequence

from bench.api.headline import made_of
from reports.ranked_table.comparison import Comparison
from results.statistics import paired_difference

LENGTH = "length"
"""Axis of a test along which inputs may be longer than those of training."""


def outdone(comparison: Comparison, variant: str, others: Sequence[str]) -> bool:
    """Whether one of some others is better, worse in no seed, and not shown to be the same.

    It may be better by the score that ranks, or on the longest inputs of the test where those are
    longer than any of training. A difference counts unless its 95% interval lies within the margin.

    Args:
        comparison: Where all of them stand.
        variant: Who may be behind.
        others: Those that are tied with it; itself may be among them.
    """
    margin = comparison.ranked_by.margin or 0.0
    sign = -1.0 if comparison.better == "lower" else 1.0
    for scores in (comparison.scores, _on_the_longest(comparison)):
        mine = scores.get(variant, {})
        for other in others:
            theirs = scores.get(other, {})
            seeds = sorted(mine.keys() & theirs.keys())
            if other != variant and _behind(mine, theirs, seeds, sign, margin):
                return True
    return False


def _behind(
    mine: Mapping[int, float],
    theirs: Mapping[int, float],
    seeds: Sequence[int],
    sign: float,
    margin: float,
) -> bool:
    ahead = [sign * (theirs[seed] - mine[seed]) for seed in seeds]
    if len(ahead) < 2 or min(ahead) < 0 or max(ahead) == 0:
        return False
    found = paired_difference([theirs[seed] for seed in seeds], [mine[seed] for seed in seeds])
    most = max(abs(found.low), abs(found.high))
    return not most <= margin if math.isfinite(most) else max(ahead) > margin


def _on_the_longest(comparison: Comparison) -> dict[str, dict[int, float]]:
    """Scores on the longest inputs by variant and seed; empty where training had such inputs."""
    trained_to = comparison.catalog.task(comparison.task).trained_to
    metric = made_of(comparison.metric)
    if trained_to is None or metric not in comparison.stored.divided().get(LENGTH, []):
        return {}
    parts = comparison.stored.parts(metric, LENGTH)
    longest = max(x for _, x in parts)
    if longest <= trained_to:
        return {}
    return {name: by_seed for (name, x), by_seed in parts.items() if x == longest}
