"""Summaries of many runs: best of n trials, robust mean, probability of improvement, fronts."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from results.statistics.intervals import finite

Better = Literal["higher", "lower"]


def expected_best(
    values: Sequence[float] | NDArray[np.float64], count: int, better: Better = "higher"
) -> float:
    """Estimate the best validation score of `count` random trials from N >= count of them.

    Unbiased (Tang et al., 2020, arXiv 2004.13705): the mean over all subsets of this size. It
    needs independent trials, as random search draws them.

    Args:
        values: Scores of all trials; finite, in any unit.
        count: Size of the budget to predict (trials), 1 to N.
        better: Which side is best.

    Raises:
        ValueError: `count` is not between 1 and N: more than N cannot be known without bias.
    """
    data = finite(values)
    if not 1 <= count <= data.size:
        raise ValueError(f"the best of {count} needs 1 to {data.size} trials; run more trials")
    ordered = np.sort(data) if better == "higher" else np.sort(data)[::-1]
    position = np.arange(count, data.size + 1)
    log_weight = _log_choose(position - 1, count - 1) - _log_choose(data.size, count)
    return float(np.exp(log_weight) @ ordered[count - 1 :])


def _log_choose(total: Any, chosen: Any) -> NDArray[np.float64]:
    # Logarithms, because the coefficients of 1,000 trials overflow.
    rest: NDArray[np.float64] = special.gammaln(np.asarray(total) - chosen + 1)
    return np.asarray(special.gammaln(np.asarray(total) + 1) - special.gammaln(chosen + 1) - rest)


def interquartile_mean(values: ArrayLike) -> NDArray[np.float64]:
    """Average the middle half of the runs along the last axis.

    A quarter of the runs, rounded down, is cut at each end: outliers lose their weight without
    the waste of a median. Fewer than four runs give the plain mean, none gives NaN.

    Returns:
        Same unit; a scalar array for one axis.
    """
    data = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    if data.shape[-1] == 0:
        return np.full(data.shape[:-1], math.nan)
    cut = data.shape[-1] // 4
    return np.asarray(data[..., cut : data.shape[-1] - cut].mean(axis=-1))


def probability_of_improvement(
    left: Sequence[float] | NDArray[np.float64],
    right: Sequence[float] | NDArray[np.float64],
    better: Better = "higher",
) -> float:
    """Estimate how often a run of `left` beats a run of `right`; ties count half.

    Returns:
        0 to 1, 0.5 for equals; NaN if one side has no runs.
    """
    first, second = finite(left), finite(right)
    if not first.size or not second.size:
        return math.nan
    sign = 1.0 if better == "higher" else -1.0
    return float((np.sign(sign * np.subtract.outer(first, second)).mean() + 1) / 2)


def pareto_front(points: ArrayLike, better: Sequence[Better]) -> list[bool]:
    """Mark the points that no other point beats in one dimension without losing in another.

    Args:
        points: One line per variant, one column per quantity (quality, time, memory).
        better: Better side of each column.

    Returns:
        True for each point on the front; equal points stay together, a point with a NaN is off.
    """
    table = np.asarray(points, dtype=np.float64).reshape(-1, len(better))
    costs = table * np.array([-1.0 if side == "higher" else 1.0 for side in better])
    return [
        bool(
            not np.isnan(point).any()
            and not ((costs <= point).all(axis=1) & (costs < point).any(axis=1)).any()
        )
        for point in costs
    ]
