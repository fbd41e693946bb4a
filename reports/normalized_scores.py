"""Scores on a scale that tasks share: 0 is uniform attention, 1 the best possible score."""

from collections.abc import Sequence
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


def normalized(comparison: Comparison, variant: str) -> dict[int, float]:
    """Scores of a variant on the shared scale, by seed.

    Args:
        comparison: One that is `on_a_scale`.
        variant: One that has scores there.
    """
    uniform = comparison.uniform_baseline
    ceiling = comparison.catalog.task(comparison.task).ceiling
    assert uniform is not None, "on_a_scale"
    assert ceiling is not None, "on_a_scale"
    zero = fmean(comparison.scores[uniform].values())
    return {
        seed: (score - zero) / (ceiling - zero)
        for seed, score in comparison.scores[variant].items()
    }


def runs_of_a_use(found: Sequence[Comparison], variant: str) -> list[float]:
    """Normalized scores of a variant, seed by seed the mean over the comparisons of a use.

    A seed that one of them lacks is left out, as those that were added to some are.
    """
    by_task = [normalized(one, variant) for one in found]
    shared = sorted(set.intersection(*map(set, by_task)))
    if not shared:
        return [fmean(fmean(scores.values()) for scores in by_task)]
    return [fmean(scores[seed] for scores in by_task) for seed in shared]


def as_many_of_each(uses: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """The first runs of each use, as many as every use has, so that each of them counts alike.

    >>> as_many_of_each([[0.1, 0.2, 0.3], [0.8, 0.9]])
    [[0.1, 0.2], [0.8, 0.9]]
    """
    fewest = min(map(len, uses))
    return [runs[:fewest] for runs in uses]
