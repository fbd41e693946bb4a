"""Intervals from Student's t: of a mean, of a paired difference, of a ratio.

One observation, or none, gives the interval (-inf, inf): nothing is known about its error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with the bounds of its error, in the unit of the data."""

    estimate: float
    """NaN if there were no data."""
    low: float
    """-inf (0 for a ratio) if too few observations bound it."""
    high: float
    """inf if too few observations bound it."""
    count: int
    """Independent observations behind it: seeds, rounds or processes."""

    @property
    def half_width(self) -> float:
        """Half of the distance between the bounds."""
        return (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        """Whether `value` is compatible with the data."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class PairedDifference(Interval):
    """A mean difference of pairs, with the p value of "no difference"."""

    p: float
    """Two-sided; 1 if fewer than two pairs can speak against "no difference"."""


def t_interval(values: Sequence[float] | NDArray[np.float64], level: float = 0.95) -> Interval:
    """Bound the mean of independent, roughly normal values.

    Exact for normal values at every count, where a percentile bootstrap of 3 values covers 75%
    instead of 95%.

    Args:
        values: One value per independent unit (a seed), in any unit; finite.
        level: Share of intervals that contain the true mean, 0 to 1.

    Raises:
        ValueError: A value is not finite, or the level is not inside (0, 1).
    """
    data = finite(values)
    mean = float(data.mean()) if data.size else math.nan
    if data.size < 2:
        _check_level(level)
        return Interval(estimate=mean, low=-math.inf, high=math.inf, count=data.size)
    half = t_quantile(level, data.size - 1) * standard_error(data)
    return Interval(estimate=mean, low=mean - half, high=mean + half, count=data.size)


def paired_difference(
    left: Sequence[float] | NDArray[np.float64],
    right: Sequence[float] | NDArray[np.float64],
    level: float = 0.95,
) -> PairedDifference:
    """Bound the mean of `left - right` over pairs (the same seed, the same round).

    Differences that are all equal have no spread: the interval has no width, and p is 1 if they
    are zero and 0 otherwise. Look at the scores before believing it.

    Raises:
        ValueError: The lengths differ, or a value is not finite.
    """
    first, second = finite(left), finite(right)
    if first.size != second.size:
        raise ValueError(f"pairs need equal lengths, got {first.size} and {second.size}")
    differences = first - second
    bounds = t_interval(differences, level)
    p = 2 * t_tail(differences, 0.0) if differences.size > 1 else 1.0
    return PairedDifference(
        estimate=bounds.estimate,
        low=bounds.low,
        high=bounds.high,
        count=bounds.count,
        p=min(p, 1.0),
    )


def log_ratio_interval(
    numerator: Sequence[float] | NDArray[np.float64],
    denominator: Sequence[float] | NDArray[np.float64],
    level: float = 0.95,
) -> Interval:
    """Bound the ratio of two times measured in the same rounds: exp(mean of log ratios).

    Args:
        numerator: Times of the variant, one per round, > 0.
        denominator: Times of the reference in the same rounds, > 0.
        level: Share of intervals that contain the true ratio.

    Returns:
        A dimensionless ratio; one round gives (0, inf).

    Raises:
        ValueError: The lengths differ, or a time is not positive and finite.
    """
    above, below = finite(numerator), finite(denominator)
    if above.size != below.size:
        raise ValueError(f"rounds need equal lengths, got {above.size} and {below.size}")
    if (above <= 0).any() or (below <= 0).any():
        raise ValueError("a ratio of times needs positive times")
    return exp_interval(t_interval(np.log(above / below), level))


def fieller_ratio(
    numerator: Sequence[float] | NDArray[np.float64],
    denominator: Sequence[float] | NDArray[np.float64],
    level: float = 0.95,
) -> Interval:
    """Bound the ratio of two means of independent samples (Fieller; Kalibera and Jones, 2007).

    For samples that share no rounds, such as two runs on two days; unlike `log_ratio_interval`
    it needs no pairs and no positive values.

    Returns:
        A dimensionless ratio, (-inf, inf) if the denominator is not clearly different from zero;
        `count` is the smaller sample.
    """
    above, below = t_interval(numerator, level), t_interval(denominator, level)
    x, y, count = above.estimate, below.estimate, min(above.count, below.count)
    estimate = x / y if y else math.nan
    if not (math.isfinite(above.half_width) and below.half_width < abs(y)):
        return Interval(estimate=estimate, low=-math.inf, high=math.inf, count=count)
    scale = y**2 - below.half_width**2
    root = math.sqrt(max(0.0, (x * y) ** 2 - (x**2 - above.half_width**2) * scale))
    return Interval(
        estimate=estimate, low=(x * y - root) / scale, high=(x * y + root) / scale, count=count
    )


def log_log_slope(
    x: Sequence[float] | NDArray[np.float64],
    y: Sequence[float] | NDArray[np.float64],
    level: float = 0.95,
) -> Interval:
    """Bound the exponent of growth, k in y = c x^k, by least squares on logarithms.

    Args:
        x: Sizes, > 0.
        y: Costs at these sizes, in any unit; points that are not positive are left out.
        level: Share of intervals that contain the true exponent.

    Returns:
        A dimensionless exponent; fewer than three different sizes give NaN in (-inf, inf), since
        a line through two points has no error to estimate. `count` is the number of points.
    """
    sizes, costs = finite(x), finite(y)
    kept = (sizes > 0) & (costs > 0)
    across, up = np.log(sizes[kept]), np.log(costs[kept])
    if np.unique(across).size < 3:
        return Interval(estimate=math.nan, low=-math.inf, high=math.inf, count=across.size)
    centered = across - across.mean()
    spread = float(centered @ centered)
    slope = float(centered @ up) / spread
    residual = up - up.mean() - slope * centered
    freedom = across.size - 2
    error = math.sqrt(float(residual @ residual) / freedom / spread)
    half = t_quantile(level, freedom) * error
    return Interval(estimate=slope, low=slope - half, high=slope + half, count=across.size)


def exp_interval(log: Interval) -> Interval:
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


def standard_error(data: NDArray[np.float64]) -> float:
    """Estimate the standard deviation of the mean of two or more values."""
    return float(data.std(ddof=1)) / math.sqrt(data.size)


def t_quantile(level: float, freedom: float) -> float:
    """Half width of a two-sided interval, in standard errors."""
    _check_level(level)
    return float(special.stdtrit(freedom, (1 + level) / 2))


def t_tail(data: NDArray[np.float64], mean: float) -> float:
    """Give the smaller tail of the t test that the true mean of two or more values is `mean`."""
    distance, error = abs(float(data.mean()) - mean), standard_error(data)
    if error == 0:
        return 0.5 if distance == 0 else 0.0
    return float(special.stdtr(data.size - 1, -distance / error))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be inside (0, 1), got {level}; 0.95 is usual")
