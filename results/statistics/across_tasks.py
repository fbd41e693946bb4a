"""What many tasks say together of two variants: a sign test, and who is likelier to be better."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from results.statistics.intervals import Interval

Better = Literal["higher", "lower"]
PairOfScores = tuple[Sequence[float], Sequence[float], Better]
"""Scores by seed of one variant and of another on one task, and the better side."""


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p of as many wins and losses, or more uneven ones, where both are as likely.

    >>> sign_test(5, 0), sign_test(3, 3), sign_test(0, 0)
    (0.0625, 1.0, 1.0)
    """
    if wins + losses == 0:
        return 1.0
    return float(stats.binomtest(wins, wins + losses, 0.5).pvalue)


def probability_of_improvement(
    tasks: Sequence[PairOfScores],
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """How likely a run of one variant is better than a run of another, as a mean over tasks.

    On each task it is the share of pairs of runs of which the first is better; equal scores count
    as half (Agarwal et al., 2021, section 4.2). Bounds are percentiles of a bootstrap over tasks,
    and over the seeds of each, so they are too narrow rather than too wide where tasks are few.

    Args:
        tasks: Scores of both variants on each task, at least one task.
        rng: Source of the resamples.
        resamples: Number of resamples, 1000 or more for 95%.
        level: Of the interval.

    Raises:
        ValueError: There is no task, or one of them lacks scores.
    """
    if not tasks or not all(len(mine) and len(theirs) for mine, theirs, _ in tasks):
        raise ValueError("a probability of improvement needs scores of both on every task")
    sides = [
        (np.asarray(mine, float) * sign, np.asarray(theirs, float) * sign)
        for mine, theirs, better in tasks
        for sign in (1.0 if better == "higher" else -1.0,)
    ]
    drawn = np.stack([_redrawn(mine, theirs, resamples, rng) for mine, theirs in sides])
    chosen = rng.integers(len(sides), size=(resamples, len(sides)))
    means = drawn[chosen, np.arange(resamples)[:, None]].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    estimate = float(np.mean([_share(mine[None], theirs[None])[0] for mine, theirs in sides]))
    return Interval(estimate=estimate, low=float(low), high=float(high), count=len(sides))


def _share(mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of pairs of which the first is better, for each line of seeds."""
    gap = mine[:, :, None] - theirs[:, None, :]
    return np.asarray(((gap > 0) + 0.5 * (gap == 0)).mean(axis=(1, 2)))


def _redrawn(
    mine: NDArray[np.float64],
    theirs: NDArray[np.float64],
    resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    first = mine[rng.integers(mine.size, size=(resamples, mine.size))]
    second = theirs[rng.integers(theirs.size, size=(resamples, theirs.size))]
    return _share(first, second)
