"""The harder part of a test, for comparisons in which the whole of it is solved."""

import math
from dataclasses import replace

import pandas as pd

from reports.ranked_table.comparison import Comparison

SIZES = ("length", "source_length", "difficulty", "digits", "facts")
"""Axes whose larger values are harder."""
SOLVED = 0.99
"""Share of the way to the bound of a metric from which on a score says nothing more."""


def is_solved(comparison: Comparison) -> bool:
    """Whether two contenders or more have all but the best score that is possible."""
    low, high = comparison.catalog.metric(comparison.metric).limits
    worst, best = (high, low) if comparison.better == "lower" else (low, high)
    if comparison.better == "none" or not (math.isfinite(worst) and math.isfinite(best)):
        return False
    level = worst + SOLVED * (best - worst)
    sign = -1.0 if comparison.better == "lower" else 1.0
    means = [comparison.means[name].estimate for name in comparison.contenders]
    return sum(sign * mean >= sign * level for mean in means) > 1


def harder_test(comparison: Comparison) -> Comparison | None:
    """The same comparison on the hardest stored part of its test; None where there is none.

    A part counts where every scored variant has it, and where the best contender is above uniform
    attention, so that something can be seen.
    """
    for axis in SIZES:
        rows = _parts(comparison, axis)
        for x in sorted(rows["x"].unique(), reverse=True):
            part = _ranked_by(comparison, rows[rows["x"] == x], f"{axis.replace('_', ' ')} {x:g}")
            if part.scores.keys() == comparison.scores.keys() and _shows_something(part):
                return None if is_solved(part) else part
    return None


def _parts(comparison: Comparison, axis: str) -> pd.DataFrame:
    frame = comparison.frame
    return frame[
        (frame["split"] == "test")
        & (frame["status"] == "ok")
        & (frame["metric"] == comparison.metric)
        & (frame["axis"] == axis)
    ]


def _ranked_by(comparison: Comparison, rows: pd.DataFrame, part: str) -> Comparison:
    """A comparison whose test score is that of one part."""
    frame = comparison.frame
    whole = (frame["split"] == "test") & (frame["metric"] == comparison.metric)
    whole &= frame["axis"] == ""
    scored = rows.assign(axis="", x=math.nan)
    return replace(
        comparison,
        title=f"{comparison.title}, {part}",
        frame=pd.concat([frame[~whole], scored]),
        aside=comparison.aside.iloc[:0],
        part=part,
    )


def _shows_something(comparison: Comparison) -> bool:
    uniform = comparison.uniform_baseline
    if uniform is None or uniform not in comparison.means:
        return True
    level = comparison.means[uniform].estimate
    sign = -1.0 if comparison.better == "lower" else 1.0
    means = [comparison.means[name].estimate for name in comparison.contenders]
    return any(sign * mean > sign * level for mean in means)
