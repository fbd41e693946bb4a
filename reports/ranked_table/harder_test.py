"""The harder part of a test, for comparisons in which the whole of it is solved."""

from dataclasses import replace

from reports.ranked_table.comparison import LEVEL, Comparison
from reports.ranked_table.saturation import is_solved
from reports.ranked_table.stored_values import BySeed

SIZES = ("length", "source_length", "difficulty", "digits", "facts")
"""Axes whose larger values are harder."""


def harder_test(comparison: Comparison) -> Comparison | None:
    """The same comparison on the hardest stored part of its test; None where there is none.

    A part counts where every scored variant has it, and where a contender is significantly better
    than uniform attention, so that there is something to compare. So there is none where uniform
    attention was not run. The error rate is divided among the parts, of which any may be the one
    that is found.
    """
    for axis in SIZES:
        found = comparison.stored.parts(comparison.metric, axis)
        hardest_first = sorted({x for _, x in found}, reverse=True)
        for x in hardest_first:
            scores = {name: found[name, x] for name in comparison.scores if (name, x) in found}
            part = _ranked_by(comparison, scores, f"{axis.replace('_', ' ')} {x:g}")
            level = LEVEL / len(hardest_first)
            if scores.keys() == comparison.scores.keys() and _shows_something(part, level):
                return None if is_solved(part) else part
    return None


def _ranked_by(comparison: Comparison, scores: BySeed, part: str) -> Comparison:
    """A comparison whose test score is that of one part."""
    return replace(
        comparison,
        title=f"{comparison.title}, {part}",
        aside=comparison.aside.iloc[:0],
        part=part,
        given=scores,
        plain=comparison,
    )


def _shows_something(comparison: Comparison, level: float) -> bool:
    """Whether something was learned there; without uniform attention nothing says so."""
    uniform = comparison.uniform_baseline
    if uniform is None:
        return False
    return any(comparison.p_better(name, uniform) < level for name in comparison.contenders)
