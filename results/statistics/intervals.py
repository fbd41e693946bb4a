"""Intervals from Student's t: of a mean, of a paired difference, of a ratio.

One observation, or none, gives the interval (-inf, inf): nothing is known about its error. So do
several that are equal but for rounding: copies of one number, or seeds that all end at one score,
leave the t distribution no spread to work with, and no spread is not certainty.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

ROUNDING = 1e-6
"""Values that differ by a smaller share of the largest one differ by rounding alone."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with the bounds of its error, in the unit of the data."""

    estimate: float
    """NaN if there were no data."""
    low: float
    """-inf (0 for a ratio) if too few observations, or observations without spread, bound it."""
    high: float
    """inf if too few observations, or observations without spread, bound it."""
    count: int
    """Independent observations behind it: seeds, rounds or processes."""

    @property
    def half_width(self) -> float:
        """Half of the distance between the bounds."""
        return (self.high - self.low) / 2

    @property
    def without_spread(self) -> bool:
        """Whether there are several observations, and no error can be estimated from them."""
        return self.count > 1 and not math.isfinite(self.half_width)

    def contains(self, value: float) -> bool:
        """Whether `value` is compatible with the data."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class PairedDifference(Interval):
    """A mean difference of pairs, with the p value of "no difference"."""

    p: float
    """Two-sided; 1 if fewer than two pairs can speak against "no difference"; that of the sign
    test if the differences have no spread."""


def t_interval(
    values: Sequence[float] | NDArray[np.float64], level: float = 0.95, scale: float | None = None
) -> Interval:
    """Bound the mean of independent, roughly normal values.

    Exact for normal values at every count, where a percentile bootstrap of 3 values covers 75%
    instead of 95%.

    Args:
        values: One value per independent unit (a seed), in any unit; finite.
        level: Share of intervals that contain the true mean, 0 to 1.
        scale: Size of the largest number that the values were computed from, by which rounding
            is separated from spread: 1 for logarithms of ratios; that of the values if not given.

    Returns:
        Same unit; (-inf, inf) for values that are equal but for rounding.

    Raises:
        ValueError: A value is not finite, or the level is not inside (0, 1).
    """
    _check_level(level)
    data = finite(values)
    mean = float(data.mean()) if data.size else math.nan
    error = standard_error(data, largest(data) if scale is None else scale)
    if error == 0:
        return Interval(estimate=mean, low=-math.inf, high=math.inf, count=data.size)
    half = t_quantile(level, data.size - 1) * error
    return Interval(estimate=mean, low=mean - half, high=mean + half, count=data.size)


def paired_difference(
    left: Sequence[float] | NDArray[np.float64],
    right: Sequence[float] | NDArray[np.float64],
    level: float = 0.95,
) -> PairedDifference:
    """Bound the mean of `left - right` over pairs (the same seed, the same round).

    Differences that are all equal, but for rounding of the scores, have no spread: nothing bounds
    them, and p is that of the sign test, 2^(1 - n) of n equal signs, or 1 if they are zero. Three
    seeds are then no evidence, six are. It is the rule for an accuracy that is one example better
    in each seed as much as for seeds that draw nothing and copy one number.

    Raises:
        ValueError: The lengths differ, or a value is not finite.
    """
    first, second = finite(left), finite(right)
    if first.size != second.size:
        raise ValueError(f"pairs need equal lengths, got {first.size} and {second.size}")
    differences = first - second
    scale = max(largest(first), largest(second))
    bounds = t_interval(differences, level, scale)
    tail = p_above(differences if bounds.estimate > 0 else -differences, 0.0, scale)
    return PairedDifference(
        estimate=bounds.estimate,
        low=bounds.low,
        high=bounds.high,
        count=bounds.count,
        p=min(1.0, 2 * tail),
    )


def ratio_interval(
    log_ratios: Sequence[float] | NDArray[np.float64], level: float = 0.95
) -> Interval:
    """Bound the ratio of two costs that were measured in pairs: exp(mean of log ratios).

    Every ratio of times of a report is bounded here.

    Args:
        log_ratios: log(cost / cost of the reference), one per independent round, process or seed.
        level: Share of intervals that contain the true ratio.

    Returns:
        A dimensionless ratio; one of them, or several without spread, give (0, inf).

    Raises:
        ValueError: A logarithm is not finite, as that of a cost of 0.
    """
    return _exp(t_interval(log_ratios, level, scale=1.0))


def _exp(log: Interval) -> Interval:
    """Turn an interval of natural logarithms into one of ratios; (-inf, inf) becomes (0, inf)."""
    # numpy, because math.exp raises where a bound is beyond the largest float.
    with np.errstate(over="ignore"):
        estimate, low, high = np.exp([log.estimate, log.low, log.high])
    return Interval(estimate=float(estimate), low=float(low), high=float(high), count=log.count)


def finite(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Check values before any statistic: one axis, no NaN, no infinity."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or not np.isfinite(data).all():
        raise ValueError("statistics need a flat list of finite values")
    return data


def largest(data: NDArray[np.float64]) -> float:
    """Give the size of the largest value, 0 without values."""
    return float(np.abs(data).max(initial=0.0))


def standard_error(data: NDArray[np.float64], scale: float) -> float:
    """Estimate the standard deviation of a mean; 0 if nothing but rounding can be seen of it.

    Args:
        data: Values; fewer than two have no spread.
        scale: Size of the largest number that they were computed from, in their unit, >= 0.
    """
    spread = float(data.std(ddof=1)) if data.size > 1 else 0.0
    return spread / math.sqrt(data.size) if spread > ROUNDING * scale else 0.0


def t_quantile(level: float, freedom: float) -> float:
    """Half width of a two-sided interval, in standard errors."""
    _check_level(level)
    return float(special.stdtrit(freedom, (1 + level) / 2))


def p_above(data: NDArray[np.float64], mean: float, scale: float) -> float:
    """Give the p value of "the true mean is `mean` or less".

    Of the t test, and of the sign test if the values have no spread: 2^-n if they lie above, 1 if
    they do not. Fewer than two values are no evidence.

    Args:
        data: One value per independent unit.
        mean: In their unit.
        scale: Size of the largest number that they were computed from.
    """
    if data.size < 2:
        return 1.0
    excess, error = float(data.mean()) - mean, standard_error(data, scale)
    if error == 0:
        return 2.0**-data.size if excess > ROUNDING * scale else 1.0
    return float(special.stdtr(data.size - 1, -excess / error))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be inside (0, 1), got {level}; 0.95 is usual")
