"""Whether the score of a comparison is so near to the best possible one that it tells nothing."""

import math

from reports.ranked_table.comparison import Comparison

SOLVED = 0.99
"""Share of the way to the bound of a metric from which on a score says nothing more."""
NEARLY_ALL = 0.75
"""Share of the contenders."""


def saturation_level(comparison: Comparison) -> float:
    """The score from which on a variant is called saturated; NaN where a metric has no bounds."""
    low, high = comparison.ranked_by.limits
    worst, best = (high, low) if comparison.better == "lower" else (low, high)
    if comparison.better == "none" or not (math.isfinite(worst) and math.isfinite(best)):
        return math.nan
    return worst + SOLVED * (best - worst)


def edge(comparison: Comparison, variant: str, other: str) -> str:
    """`at the ceiling` or `at chance` where two means are all but that; else nothing.

    That two are equivalent there shows that the task is too easy or too hard for both.
    """
    ranked_by = comparison.ranked_by
    low, high = ranked_by.limits
    if comparison.better == "none" or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    worst, best = (high, low) if comparison.better == "lower" else (low, high)
    chance = comparison.catalog.level(comparison.task, "chance")
    width = (1 - SOLVED) * (high - low)
    means = [comparison.means[name].estimate for name in (variant, other)]
    for place, level in (
        ("at the ceiling", best),
        ("at chance", worst if chance is None else chance),
    ):
        if all(abs(mean - level) <= width for mean in means):
            return place
    return ""


def is_solved(comparison: Comparison) -> bool:
    """Whether two contenders or more have all but the best score that is possible."""
    return sum(_saturated(comparison)) > 1


def nearly_all_solved(comparison: Comparison) -> bool:
    """Whether two contenders or more, and three in four of them, do."""
    found = _saturated(comparison)
    return sum(found) > 1 and sum(found) >= NEARLY_ALL * len(found)


def _saturated(comparison: Comparison) -> list[bool]:
    level = saturation_level(comparison)
    sign = -1.0 if comparison.better == "lower" else 1.0
    return [
        sign * comparison.means[name].estimate >= sign * level for name in comparison.contenders
    ]
