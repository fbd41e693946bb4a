"""The moderated test of ADR 23 and Holm's correction, written a second time.

Nothing of `results.statistics` is used, and all pairs of a table are tested at once.
"""

import math
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

ROUNDING = 1e-6
"""Scores of one or two variants that differ by a smaller share of the largest one differ by
rounding alone."""

Array = NDArray[np.float64]


def holm(p_values: "pd.Series[float]") -> "pd.Series[float]":
    ordered = p_values.sort_values(kind="stable")
    steps = np.arange(len(ordered), 0, -1)
    return (ordered * steps).cummax().clip(upper=1.0).reindex(p_values.index)


class Again:
    """The moderated test of ADR 23, of every pair of a table at once."""

    def __init__(self, scores: pd.DataFrame) -> None:
        """Read a table: a line a variant, a column a seed, NaN where a seed is missing."""
        self.scores = scores
        values = scores.to_numpy(float)
        known = ~np.isnan(values)
        self.largest = float(np.nanmax(np.abs(values)))
        scale = np.nanmax(np.abs(values), axis=1)
        self.rounding = ROUNDING * np.maximum(scale, 1e-7 * scale.max())
        self.rounding_of_pairs = np.maximum(self.rounding[:, None], self.rounding[None])
        self.place = {str(name): at for at, name in enumerate(scores.index)}
        self.freedom = known.sum(axis=1) - 1.0
        own = scores.var(axis=1, ddof=1).fillna(0.0).to_numpy()
        own = np.where(own > self.rounding**2, own, 0.0)
        several = own[self.freedom > 0]
        moving = several[several > 0]
        common = min(several.mean(), 5 * np.median(moving)) if len(moving) else 0.0
        self.prior = 1 - 2 / len(scores) if len(scores) > 1 else 0.0
        total = self.prior + self.freedom
        shrunk = self.prior * common + self.freedom * own
        self.variance = np.where(self.freedom > 0, shrunk / np.where(total > 0, total, 1), common)
        self.together = known[:, None] & known[None]
        self.count = self.together.sum(axis=2)
        filled = np.nan_to_num(values)
        gaps = np.where(self.together, filled[:, None] - filled[None], 0.0)
        with np.errstate(invalid="ignore"):
            self.mean = gaps.sum(axis=2) / np.where(self.count > 0, self.count, np.nan)
        self.correlation = self._correlation(filled)
        rest = np.where(self.together, gaps - self.mean[:, :, None], 0.0)
        spread = (rest**2).sum(axis=2) / np.maximum(self.count - 1, 1)
        self._test(np.where(spread > self.rounding_of_pairs**2, spread, 0.0))

    def _correlation(self, filled: Array) -> float:
        """The mean over all pairs on their common seeds, less two standard errors."""
        mean = np.where(self.together, filled[:, None], 0).sum(axis=2) / np.maximum(self.count, 1)
        rest = np.where(self.together, filled[:, None] - mean[:, :, None], 0.0)
        length = np.sqrt((rest**2).sum(axis=2))
        moves = length > self.rounding[:, None]
        both = moves & moves.T
        products = (rest * rest.transpose(1, 0, 2)).sum(axis=2)[
            both & ~np.eye(len(mean), dtype=bool)
        ]
        lengths = (length * length.T)[both & ~np.eye(len(mean), dtype=bool)]
        found = float((products / lengths).mean()) if len(products) else 0.0
        if found <= 0:
            return 0.0
        error = 1 / math.sqrt(self.freedom.mean() * len(self.scores))
        return max(0.0, math.tanh(math.atanh(min(found, 1 - 1e-12)) - 2 * error))

    def _test(self, own: Array) -> None:
        """Standard errors, degrees of freedom and two-sided p values."""
        freedom, squared = self.count - 1.0, own
        if len(self.scores) > 2:
            one, other = self.variance[:, None], self.variance[None]
            shared = one + other - 2 * self.correlation * np.sqrt(one * other)
            squared = np.maximum(shared, own)
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = self.variance**2 / (self.freedom + self.prior)
                sums = parts[:, None] + parts[None]
                freedom = np.where(sums > 0, (one + other) ** 2 / sums, freedom)
        squared = squared / np.maximum(self.count, 1)
        self.still = squared <= self.rounding_of_pairs**2
        self.error = np.sqrt(np.where(self.still, np.nan, squared))
        self.degrees = freedom
        with np.errstate(invalid="ignore"):
            p = 2 * stats.t.sf(np.abs(self.mean) / self.error, freedom)
        sign = np.where(np.abs(self.mean) > self.rounding_of_pairs, 2.0 ** (1 - self.count), 1.0)
        p = np.where(self.still, sign, p)
        self.different = np.where(self.count < 2, 1.0, p)

    def at(self, one: str, other: str) -> tuple[int, int]:
        return self.place[one], self.place[other]

    def ahead(self, one: str, other: str) -> float:
        """The mean difference on common seeds."""
        return float(self.mean[self.at(one, other)])

    def p_equal(self, one: str, other: str, margin: float) -> float:
        """Of a difference of the margin or more."""
        at = self.at(one, other)
        if self.count[at] < 2:
            return 1.0
        inside = margin - abs(self.mean[at])
        if self.still[at]:
            return float(2.0 ** -self.count[at]) if inside > ROUNDING * margin else 1.0
        return float(stats.t.sf(inside / self.error[at], self.degrees[at]))

    def p_values(self, one: str, other: str, margin: float | None) -> tuple[float, float]:
        """Of no difference, and of a difference of the margin or more."""
        equal = self.p_equal(one, other, margin) if margin else math.nan
        return float(self.different[self.at(one, other)]), equal

    def every_pair(self) -> dict[tuple[str, str], float]:
        """P of no difference after Holm's correction over all pairs, found either way round."""
        above = np.triu_indices(len(self.scores), 1)
        names = [*self.place]
        adjusted = holm(pd.Series(self.different[above]))
        pairs = list(combinations(names, 2))
        found = dict(zip(pairs, adjusted.tolist(), strict=True))
        return found | {(other, one): p for (one, other), p in found.items()}
