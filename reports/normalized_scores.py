"""Scores on a scale that tasks share: 0 is uniform attention, 1 the best possible score."""

from statistics import fmean

from reports.ranked_table.comparison import Comparison

LEAST_RANGE = 0.05
"""Share of the range that must lie between uniform attention and the ceiling; less is noise."""


def on_a_scale(comparison: Comparison) -> bool:
    """Whether a task has a best possible score that is well above uniform attention."""
    uniform = comparison.uniform_baseline
    ceiling = comparison.catalog.task(comparison.task).ceiling
    if uniform not in comparison.means or ceiling is None or comparison.better == "none":
        return False
    low, high = comparison.ranked_by.limits
    return abs(ceiling - comparison.means[uniform].estimate) > LEAST_RANGE * (high - low)


def normalized(comparison: Comparison, variant: str) -> list[float]:
    """Scores of the seeds of a variant on the shared scale.

    Args:
        comparison: One that is `on_a_scale`.
        variant: One that has scores there.
    """
    uniform = comparison.uniform_baseline
    ceiling = comparison.catalog.task(comparison.task).ceiling
    assert uniform is not None, "on_a_scale"
    assert ceiling is not None, "on_a_scale"
    zero = fmean(comparison.scores[uniform].values())
    return [(score - zero) / (ceiling - zero) for score in comparison.scores[variant].values()]
