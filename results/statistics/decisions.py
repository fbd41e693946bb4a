"""Decisions: adjustment for many tests, equivalence, and the verdict on a speed ratio."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from results.statistics.intervals import finite, largest, p_above, t_interval

Verdict = Literal["FAST", "SLOW", "SAME", "AMBIGUOUS"]

SPEED_FLOOR = 0.01
"""No speed claim inside 1%, however quiet the machine."""
SAME_MARGIN = 0.02
"""Two speeds within 2% are the same to a user."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values so that all claims of one table together are wrong at most at their level.

    Holm (1979): valid whatever the dependence between the tests. A NaN counts as 1: no evidence.

    Args:
        p_values: One per test, 0 to 1.

    Returns:
        Adjusted p values in the order given, each between its p value and 1.
    """
    known = np.array([1.0 if math.isnan(p) else p for p in p_values], dtype=np.float64)
    order = np.argsort(known, kind="stable")
    still_open = np.arange(known.size, 0, -1)
    scaled = known[order] * still_open
    adjusted = np.empty_like(known)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in adjusted]


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """Two one-sided tests of a mean difference against a margin."""

    p: float
    """Of "the true difference is at least the margin, either way"."""
    count: int

    def holds(self, alpha: float = 0.05) -> bool:
        """Whether the difference is shown to lie inside the margin."""
        return self.p < alpha


def equivalence(differences: Sequence[float] | NDArray[np.float64], margin: float) -> Equivalence:
    """Test whether the mean of paired differences lies inside +-margin (TOST).

    "Not significantly different" with few seeds says nothing; this says "the same", or nothing.
    Differences without spread are decided by the sign test, which needs five of them at 5%.

    Args:
        differences: One per pair; finite.
        margin: Largest difference without practical meaning, in their unit, > 0, fixed before
            the run.

    Returns:
        p values of 1 if fewer than two differences were given.

    Raises:
        ValueError: The margin is not positive, or a difference is not finite.
    """
    if not margin > 0:
        raise ValueError(f"margin must be positive, got {margin}")
    data = finite(differences)
    scale = max(margin, largest(data))
    p = max(p_above(side, -margin, scale) for side in (data, -data))
    return Equivalence(p=p, count=data.size)


def speed_verdict(
    log_ratios: Sequence[float] | NDArray[np.float64],
    aa_half_width: float,
    level: float = 0.95,
) -> Verdict:
    """Say whether a variant is faster or slower than the reference, or admit not to know.

    FAST or SLOW needs the whole t interval outside max(1%, 2 x `aa_half_width`); SAME needs both
    the variant and the A/A control shown to lie within 2%; everything else is AMBIGUOUS, ratios
    without any spread included, which no clock gives.

    Args:
        log_ratios: log(time / time of the reference), one per independent round or process.
        aa_half_width: Error of the reference timed against itself, as a fraction (0.01 is 1%);
            NaN or inf without an A/A control, and then nothing can be claimed.
        level: Of the interval; SAME is tested at 1 - level.
    """
    if not math.isfinite(aa_half_width):
        return "AMBIGUOUS"
    silent = math.log1p(max(SPEED_FLOOR, 2 * aa_half_width))
    bounds = t_interval(log_ratios, level, scale=1.0)
    if bounds.high < -silent:
        return "FAST"
    if bounds.low > silent:
        return "SLOW"
    margin = math.log1p(SAME_MARGIN)
    same = equivalence(log_ratios, margin).holds(1 - level)
    return "SAME" if same and aa_half_width <= SAME_MARGIN else "AMBIGUOUS"
