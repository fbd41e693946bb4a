"""Growth of a cost with a size: the slope between logarithms, and whether a line describes it.

The sizes are chosen, and measured one after another, each several times. So the error of a slope is
that of the clock at each size. It says nothing about other sizes. Whether the slope is the same
between all of them is a question of its own, which `Line` answers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from results.statistics.intervals import Interval, finite, standard_error, t_quantile

Line = Literal["straight", "not straight", "not told"]
"""Whether the slope is the same between all neighboring sizes, as far as the costs show it."""

STRAIGHT_WITHIN = 0.1
"""Slopes before and after a size that differ by less are those of a straight line."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Slope of log cost against log size, over all sizes and between neighbors."""

    slope: Interval
    """Over all sizes; unbounded where the clock's error is unknown. `count` is the sizes."""
    pieces: tuple[float, ...] = ()
    """Slopes between neighboring sizes, from the smallest on."""
    line: Line = "not told"


def growth(logs: Mapping[float, Sequence[float]], *, exact: bool = False) -> Growth:
    """Bound the exponent k in cost = c * size^k.

    The slope is that of least squares through the mean logarithms of the sizes, all of equal
    weight, so that it means the same whatever the noise. It is a weighted sum of independent
    means. Its error follows from the spread at each size, with degrees of freedom by Welch and
    Satterthwaite.

    Args:
        logs: Natural logarithms of the cost by size (> 0), one per independent round or process.
        exact: Whether costs are counted, and equal whenever they are counted again.

    Returns:
        NaN in (-inf, inf) for fewer than two sizes. The interval has 95%. It is (-inf, inf) for
        exact costs, and where a size has no spread from which an error could be estimated. `line`
        is "not straight" if two pieces, one after the other, are shown to differ by more than
        `STRAIGHT_WITHIN`, at 5% for all such pairs together; "straight" if all are shown to differ
        by less, at 5%; and "not told" for fewer than three sizes.
    """
    sizes = sorted(size for size, of_size in logs.items() if len(of_size))
    if len(sizes) < 2:
        return Growth(slope=_unbounded(math.nan, len(sizes)))
    values = [finite(logs[size]) for size in sizes]
    across = np.log(np.asarray(sizes, dtype=np.float64))
    centered = across - across.mean()
    between = _slopes_between(across)
    slope = _contrast(centered / (centered @ centered), values)
    if exact:
        slope = _unbounded(slope.estimate, len(sizes))
    pieces = between @ np.array([one.mean() for one in values])
    return Growth(
        slope=slope,
        pieces=tuple(float(piece) for piece in pieces),
        line=_line(np.diff(between, axis=0), values, exact=exact),
    )


def _line(
    changes: NDArray[np.float64], values: Sequence[NDArray[np.float64]], *, exact: bool
) -> Line:
    """Judge the changes of slope from each piece to the next one, each a weighted sum of means."""
    if not len(changes):
        return "not told"
    if exact:
        means = np.array([one.mean() for one in values])
        return "not straight" if np.abs(changes @ means).max() > STRAIGHT_WITHIN else "straight"
    bounds = [_contrast(weights, values, 1 - 0.05 / len(changes)) for weights in changes]
    if any(one.low > STRAIGHT_WITHIN or one.high < -STRAIGHT_WITHIN for one in bounds):
        return "not straight"
    # two one-sided tests at 5% each are an interval of 90% within the margin
    inner = [_contrast(weights, values, 0.9) for weights in changes]
    if all(one.low > -STRAIGHT_WITHIN and one.high < STRAIGHT_WITHIN for one in inner):
        return "straight"
    return "not told"


def _slopes_between(across: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the means, one line for the slope of each piece."""
    steps = np.diff(across)[:, None]
    return np.diff(np.eye(len(across)), axis=0) / steps


def _contrast(
    weights: NDArray[np.float64], values: Sequence[NDArray[np.float64]], level: float = 0.95
) -> Interval:
    """Bound a weighted sum of independent means, each with a spread of its own."""
    estimate = float(weights @ np.array([one.mean() for one in values]))
    errors = np.array([standard_error(one, 1.0) for one in values])
    if not errors.all():
        return _unbounded(estimate, len(values))
    parts = (weights * errors) ** 2
    freedom = np.array([one.size - 1 for one in values])
    variance = float(parts.sum())
    half = t_quantile(level, variance**2 / float((parts**2 / freedom).sum())) * math.sqrt(variance)
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half, count=len(values))


def _unbounded(estimate: float, count: int) -> Interval:
    return Interval(estimate=estimate, low=-math.inf, high=math.inf, count=count)
