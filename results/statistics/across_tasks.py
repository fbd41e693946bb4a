"""What many tasks say together: a sign test, who is likelier to be better, means without extremes.

Tasks of one use of attention are dependent: they share data, networks and what they ask for. So
each use counts once, however many tasks it has.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from results.statistics.intervals import Interval

Better = Literal["higher", "lower"]
PairOfScores = tuple[Sequence[float], Sequence[float], Better]
"""Scores by seed of one variant and of another on one task, and the better side."""
LEAST_USES = 3
"""Uses of attention of a bootstrap interval over uses; two cover 91% instead of 95%, one 69%."""


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
    uses: Sequence[str] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """How likely a run of one variant is better than a run of another, as a mean over uses.

    On each task it is the share of pairs of runs of which the first is better; equal scores count
    as half (Agarwal et al., 2021, section 4.2). Bounds are percentiles of a bootstrap over uses,
    and over the seeds of each task, so they are too narrow rather than too wide where uses are few.
    Of fewer than `LEAST_USES` uses nothing is known, and the bounds are infinite.

    Args:
        tasks: Scores of both variants on each task, at least one task.
        rng: Source of the resamples.
        uses: Use of attention of each task; tasks of one use count as one, by their mean. Each
            task is a use of its own if not given.
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
    found = np.stack([_share(mine[None], theirs[None]) for mine, theirs in sides])
    drawn, found = (_mean_of_uses(values, uses) for values in (drawn, found))
    chosen = rng.integers(len(drawn), size=(resamples, len(drawn)))
    means = drawn[chosen, np.arange(resamples)[:, None]].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    if len(drawn) < LEAST_USES:  # one use drawn again is itself, which would look like certainty
        low, high = -np.inf, np.inf
    return Interval(
        estimate=float(found.mean()), low=float(low), high=float(high), count=len(drawn)
    )


def interquartile_mean(
    tasks: Sequence[Sequence[float]],
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Mean of the middle half of all runs, whatever their task (Agarwal et al., 2021, section 4.3).

    Bounds are percentiles of a bootstrap that draws the seeds of each task again. They speak of
    these tasks alone, and are too narrow with few seeds: three seeds of eight tasks cover 85%
    instead of 95%.

    Args:
        tasks: Scores of each task over seeds, on a scale that all tasks share.
        rng: Source of the resamples.
        resamples: Number of resamples, 1000 or more for 95%.
        level: Of the interval.

    Raises:
        ValueError: There is no task, or one of them lacks scores.
    """
    if not tasks or not all(map(len, tasks)):
        raise ValueError("an interquartile mean needs scores on every task")
    known = [np.asarray(scores, dtype=np.float64) for scores in tasks]
    drawn = np.concatenate(
        [scores[rng.integers(scores.size, size=(resamples, scores.size))] for scores in known],
        axis=1,
    )
    means = stats.trim_mean(drawn, 0.25, axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    estimate = float(stats.trim_mean(np.concatenate(known), 0.25))
    return Interval(estimate=estimate, low=float(low), high=float(high), count=len(known))


def performance_profile(tasks: Sequence[ArrayLike], thresholds: Sequence[float]) -> list[float]:
    """Share of runs above each threshold, each task counting alike (Agarwal et al., section 4.1).

    Args:
        tasks: Scores of each task over seeds, on a scale that all tasks share, larger is better.
        thresholds: On the same scale.

    >>> performance_profile([[0.5, 1.0], [0.2, 0.4]], [0.0, 0.45, 0.9])
    [1.0, 0.5, 0.25]
    """
    levels = np.asarray(thresholds)
    shares = [(np.asarray(scores)[:, None] > levels).mean(axis=0) for scores in tasks]
    found: list[float] = np.mean(shares, axis=0).tolist()
    return found


def _mean_of_uses(values: NDArray[np.float64], uses: Sequence[str] | None) -> NDArray[np.float64]:
    """Lines of tasks, averaged to a line a use."""
    if uses is None:
        return values
    names = [*dict.fromkeys(uses)]
    return np.stack([values[[use == name for use in uses]].mean(axis=0) for name in names])


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
