"""Differences between the variants of one table, each with a variance that borrows from the others.

Three seeds estimate a variance badly: a t test with 2 degrees of freedom needs a difference of 14
standard errors where twenty hypotheses share an error rate of 5%. The variants of one task are
trained on the same data by the same protocol, so their spreads are alike, though not equal. Here
the variance of each variant is a weighted mean of its own and of the average of the table, as in
the moderated t test of Smyth (2004, Stat. Appl. Genet. Mol. Biol. 3(1), section 3). The weight and
what guards it were chosen by simulation on the spreads of published runs (ADR 23).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean, median, variance
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from results.statistics.intervals import ROUNDING, PairedDifference, t_quantile

Scores = Mapping[str, Mapping[int, float]]
"""Variant -> seed -> score."""

PRIOR_FREEDOM = 1.0
"""Degrees of freedom that the variance of a large table counts for beside that of a variant."""
LARGEST_MEAN = 5.0
"""The average variance of a table is at most this multiple of the median, so that one variant whose
seeds fail does not hide the differences between all others."""
ZERO = 1e-7
"""Share of the largest score of a table below which a variant has no scale of its own: its scores
are zero but for rounding, which is a millionth of that."""
ERRORS_BELOW = 2.0
"""How far below its estimate the common correlation is taken, in standard errors."""


@dataclass(frozen=True, kw_only=True)
class ModeratedDifference(PairedDifference):
    """A mean difference on common seeds, with a moderated standard error."""

    error: float
    """Standard error of the mean difference; 0 where no spread was seen in the table."""
    freedom: float
    """Degrees of freedom of the error (Satterthwaite, 1946)."""
    share: float = 1.0
    """Share of the error rate that this look may spend: all, where there is no other one."""

    @property
    def effect_size(self) -> float:
        """The difference in standard deviations of the difference of one seed; NaN without one."""
        return self.estimate / (self.error * math.sqrt(self.count)) if self.error else math.nan

    def p_outside(self, margin: float) -> float:
        """P value of "the true difference is at least the margin, either way".

        It is the larger one of two one-sided tests (TOST; Schuirmann, 1987).
        Where the table has no spread, the sign test decides, as for `p`.

        Args:
            margin: In the unit of the scores, > 0, fixed before the run.
        """
        if self.count < 2:
            return 1.0
        inside = margin - abs(self.estimate)
        if not self.error:
            return 2.0**-self.count if inside > ROUNDING * margin else 1.0
        return float(special.stdtr(self.freedom, -inside / self.error))

    def p_short(self, bound: float) -> float:
        """P value of "the true difference is at least `bound`"; one-sided.

        Args:
            bound: In the unit of the scores, fixed before the run.
        """
        if self.count < 2:
            return 1.0
        short = bound - self.estimate
        if not self.error:
            return 2.0**-self.count if short > ROUNDING * abs(bound) else 1.0
        return float(special.stdtr(self.freedom, -short / self.error))

    def p_beyond(self, margin: float) -> float:
        """P value of "the true difference is at most the margin", on the side of the estimate.

        Two-sided, so that it is below 0.05 where the 95% interval does not reach the margin. With
        no margin it is `p`.

        Args:
            margin: In the unit of the scores, >= 0, fixed before the run.
        """
        excess = abs(self.estimate) - margin
        if not margin or self.count < 2:
            return self.p
        if not excess > ROUNDING * margin:
            return 1.0
        if not self.error:
            return 2.0 ** (1 - self.count)
        return float(2 * special.stdtr(self.freedom, -excess / self.error))

    def detectable(self, level: float, power: float = 0.8) -> float:
        """Smallest true difference that this test finds with some power; infinite without error.

        Args:
            level: Two-sided, after adjustment for the other tests, 0 to 1.
            power: Share of runs that would find it.
        """
        if not self.error:
            return math.inf
        quantiles = t_quantile(1 - level, self.freedom) + float(
            special.stdtrit(self.freedom, power)
        )
        return quantiles * self.error


class DifferenceTable(Protocol):
    """The scores of one task, asked pair by pair."""

    def difference(self, left: str, right: str, level: float = 0.95) -> ModeratedDifference:
        """Score of one variant minus that of another."""


class ModeratedTable:
    """The scores of one task, and what their spreads say together."""

    def __init__(self, scores: Scores) -> None:
        """Read a table.

        Args:
            scores: Score by seed of each variant, finite; seeds may be missing.

        Raises:
            ValueError: A score is not finite.
        """
        self._scores = {name: dict(by_seed) for name, by_seed in scores.items() if by_seed}
        values = [value for by_seed in self._scores.values() for value in by_seed.values()]
        if not all(map(math.isfinite, values)):
            raise ValueError("statistics need finite scores")
        # of each variant by itself: one that diverges must not make the spreads of others look like
        # rounding
        scale = {name: max(map(abs, by_seed.values())) for name, by_seed in self._scores.items()}
        least = ZERO * max(scale.values(), default=0.0)
        self._scale = {name: max(one, least) for name, one in scale.items()}

    def difference(self, left: str, right: str, level: float = 0.95) -> ModeratedDifference:
        """Score of one variant minus that of another on the seeds of both.

        The variance is never below that of the paired differences themselves, which guards against
        two variants that seeds move in opposite ways.

        Args:
            left: A variant of the table.
            right: Another one.
            level: Of the interval.
        """
        mine, theirs = self._scores[left], self._scores[right]
        gaps = [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]
        count, mean = len(gaps), fmean(gaps) if gaps else math.nan
        if count < 2:
            return _unknown(mean, count, p=1.0)
        first, second = self._variances[left], self._variances[right]
        shared = first + second - 2 * self.correlation * math.sqrt(first * second)
        scale = max(self._scale[left], self._scale[right])
        own = _variance(gaps, scale)
        # two variants have no others to borrow from: theirs is the plain paired t test
        alone = len(self._scores) == 2
        squared = (own if alone else max(shared, own)) / count
        if squared <= (ROUNDING * scale) ** 2:
            moved = abs(mean) > ROUNDING * scale
            return _unknown(mean, count, p=2.0 ** (1 - count) if moved else 1.0)
        parts = sum(one**2 / self._freedom[name] for one, name in ((first, left), (second, right)))
        freedom = float(count - 1) if alone or not parts else (first + second) ** 2 / parts
        error = math.sqrt(squared)
        half = t_quantile(level, freedom) * error
        return ModeratedDifference(
            estimate=mean,
            low=mean - half,
            high=mean + half,
            count=count,
            p=float(2 * special.stdtr(freedom, -abs(mean) / error)),
            error=error,
            freedom=freedom,
        )

    @cached_property
    def correlation(self) -> float:
        """Common correlation of variants over seeds, 0 to 1; a lower bound rather than an estimate.

        Harder seeds are harder for all variants, which pairing takes away. It is the mean over all
        pairs, less `ERRORS_BELOW` standard errors on Fisher's scale, where a correlation near 1 has
        a small error.
        """
        mean = self._mean_cosine()
        if mean <= 0:
            return 0.0
        # some variants may have fewer seeds than others
        freedom = fmean(len(by_seed) for by_seed in self._scores.values()) - 1
        if not freedom:
            return 0.0
        error = 1 / math.sqrt(freedom * len(self._scores))
        # rounding puts the cosine of two equal lines above 1
        return max(0.0, math.tanh(math.atanh(min(mean, 1 - 1e-12)) - ERRORS_BELOW * error))

    @cached_property
    def _own(self) -> dict[str, float]:
        """Variance over seeds of each variant."""
        return {
            name: _variance([*by_seed.values()], self._scale[name])
            for name, by_seed in self._scores.items()
        }

    @cached_property
    def _prior_freedom(self) -> float:
        """What the others are worth: nothing in a table of two, most in a large one."""
        return PRIOR_FREEDOM * max(0.0, 1 - 2 / len(self._scores))

    @cached_property
    def _variances(self) -> dict[str, float]:
        """Moderated variance over seeds of each variant."""
        known = [self._own[name] for name, by_seed in self._scores.items() if len(by_seed) > 1]
        moving = [one for one in known if one > 0]
        common = min(fmean(known), LARGEST_MEAN * median(moving)) if moving else 0.0
        prior, found = self._prior_freedom, {}
        for name, by_seed in self._scores.items():
            freedom = len(by_seed) - 1
            weight = freedom / (freedom + prior) if freedom else 0.0
            found[name] = weight * self._own[name] + (1 - weight) * common
        return found

    @cached_property
    def _freedom(self) -> dict[str, float]:
        """Degrees of freedom of each moderated variance."""
        return {
            name: len(by_seed) - 1 + self._prior_freedom for name, by_seed in self._scores.items()
        }

    def _mean_cosine(self) -> float:
        """Mean correlation of all pairs of variants that move over their common seeds."""
        names = [*self._scores]
        if len({frozenset(by_seed) for by_seed in self._scores.values()}) == 1:
            moves = self._moves([*self._scores[names[0]]], names)
            count = int(moves.any(axis=1).sum())
            # the square of a sum is the sum of squares, which are 1, and twice that of all pairs
            total = float((moves.sum(axis=0) ** 2).sum()) - count
            return total / (count * (count - 1)) if count > 1 else 0.0
        products = []
        for left, right in combinations(names, 2):
            seeds = sorted(self._scores[left].keys() & self._scores[right].keys())
            one, other = self._moves(seeds, [left, right])
            if one.any() and other.any():
                products.append(float(one @ other))
        return fmean(products) if products else 0.0

    def _moves(self, seeds: Sequence[int], names: Sequence[str]) -> NDArray[np.float64]:
        """How variants move over some seeds: a line each, of length 1, or 0 if it does not move."""
        values = np.array([[self._scores[name][seed] for seed in seeds] for name in names])
        centered = values - values.mean(axis=1, keepdims=True) if seeds else values
        lengths = np.linalg.norm(centered, axis=1, keepdims=True)
        still = lengths <= ROUNDING * np.array([[self._scale[name]] for name in names])
        return np.where(still, 0.0, centered / np.where(still, 1.0, lengths))


def _variance(values: Sequence[float], scale: float) -> float:
    """Variance of single values; 0 if nothing but rounding can be seen of it beside their scale."""
    spread = variance(values) if len(values) > 1 else 0.0
    return spread if spread > (ROUNDING * scale) ** 2 else 0.0


def _unknown(mean: float, count: int, p: float) -> ModeratedDifference:
    """A difference whose error nothing tells."""
    return ModeratedDifference(
        estimate=mean, low=-math.inf, high=math.inf, count=count, p=p, error=0.0, freedom=0.0
    )
