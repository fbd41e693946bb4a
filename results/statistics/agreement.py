"""Whether two tasks order the same variants alike: Spearman's rank correlation, and its bounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Scores = Mapping[str, Mapping[int, float]]

LEAST_VARIANTS = 5
"""With fewer, even a perfect agreement has p > 0.05: 4! orders make 1 / 24 on each side."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How alike two tasks order their common variants."""

    correlation: float
    """Spearman's rho of the means over seeds, -1 to 1; NaN if it cannot be told."""
    low: float
    """Percentile bound of the bootstrap over variants and over seeds; `correlation` where that is
    beyond it."""
    high: float
    p: float
    """Two-sided, by permutation of the variants; 1 if it cannot be told."""
    variants: int
    """Variants that both tasks have."""


def rank_agreement(
    left: Scores,
    right: Scores,
    rng: np.random.Generator,
    *,
    resamples: int = 2000,
    level: float = 0.95,
) -> Agreement:
    """Correlate the ranks of the variants that two tasks share.

    Variants are drawn with replacement, and of each its seeds on each task; a draw in which all
    variants tie says nothing and is left out. Percentile bounds of few variants are too narrow
    rather than too wide, so the p value comes from a permutation test, which is exact to chance.

    Args:
        left: Score by seed of each variant on one task, larger is better.
        right: The same on another task.
        rng: Source of the resamples.
        resamples: Number of resamples, 1000 or more for 95%.
        level: Of the interval.

    Returns:
        NaN in (-1, 1) with p = 1 below `LEAST_VARIANTS`, or where all variants tie.
    """
    shared = sorted(name for name in left.keys() & right.keys() if left[name] and right[name])
    nothing = Agreement(correlation=math.nan, low=-1.0, high=1.0, p=1.0, variants=len(shared))
    if len(shared) < LEAST_VARIANTS:
        return nothing
    first, second = (_rounded(_means(side, shared)) for side in (left, right))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return nothing
    chosen = rng.integers(len(shared), size=(resamples, len(shared)))
    redrawn = [_rounded(_redrawn(side, shared, chosen, rng)) for side in (left, right)]
    drawn = _spearman(*redrawn)
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    correlation = float(stats.spearmanr(first, second).statistic)
    return Agreement(
        correlation=correlation,
        # drawing a variant twice makes ties, so that hardly any draw reaches 1 or -1
        low=min(float(low), correlation),
        high=max(float(high), correlation),
        p=_p_by_permutation(first, second, rng),
        variants=len(shared),
    )


def _means(scores: Scores, names: list[str]) -> NDArray[np.float64]:
    return np.array([np.mean([*scores[name].values()]) for name in names], dtype=np.float64)


def _rounded(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means in units of the largest, without what the order of a sum does to their last digits.

    It would break a tie, and ranks are all that counts here.
    """
    units: NDArray[np.float64] = means / (np.abs(means).max() or 1.0)
    return units.round(12)


def _redrawn(
    scores: Scores, names: list[str], chosen: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means over redrawn seeds of the variants of each resample."""
    found = np.empty(chosen.shape)
    for at, name in enumerate(names):
        values = np.array([*scores[name].values()], dtype=np.float64)
        here = chosen == at
        seeds = rng.integers(values.size, size=(int(here.sum()), values.size))
        found[here] = values[seeds].mean(axis=1)
    return found


def _spearman(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's rho of each line; NaN where one side ties as a whole."""
    first, second = (stats.rankdata(side, axis=1) for side in (left, right))
    first -= first.mean(axis=1, keepdims=True)
    second -= second.mean(axis=1, keepdims=True)
    size = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        return np.asarray((first * second).sum(axis=1) / size)


def _p_by_permutation(
    left: NDArray[np.float64], right: NDArray[np.float64], rng: np.random.Generator
) -> float:
    first, second = stats.rankdata(left), stats.rankdata(right)

    def product(ranks: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        return np.asarray((ranks * second).sum(axis=axis))

    found = stats.permutation_test(
        (first,), product, permutation_type="pairings", vectorized=True, n_resamples=9999, rng=rng
    )
    return float(found.pvalue)
