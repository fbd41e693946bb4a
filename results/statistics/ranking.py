"""A ranking of variants on one task that shows ties as ties."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

from results.statistics.decisions import holm
from results.statistics.intervals import Interval, t_interval
from results.statistics.moderated import (
    DifferenceTable,
    ModeratedDifference,
    ModeratedTable,
    Scores,
)
from results.statistics.pareto import Better
from results.statistics.primary import (
    Decision,
    Hypothesis,
    primary_decisions,
    primary_hypotheses,
    secondary,
    turned,
)

ORDER_OF_SUMS = 1e-12
"""Share of a score that the order of a sum may change, which would break a tie."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One line of a ranking."""

    rank: int
    """Place of the first line of its group, from 1; never better than that of a better mean."""
    variant: str
    differs_from_best: bool
    """Significantly worse than the first line, by the mean and by the test on common seeds; a line
    on a later rank may still be tied."""
    mean: Interval
    """Mean score over the seeds of this variant, with its t interval."""
    against_baseline: Decision | None
    """Test against the baseline; None for the baseline, or without one. It is the primary test
    where there is one, and a secondary one for a control."""
    against_uniform: Decision | None
    """Test against the uniform baseline, in the same way."""

    @property
    def difference(self) -> ModeratedDifference | None:
        """Score minus the baseline's on common seeds; None for the baseline, or without one."""
        return self.against_baseline.difference if self.against_baseline else None

    @property
    def p_adjusted(self) -> float:
        """Adjusted p of the primary test against the baseline; NaN without one."""
        return self.against_baseline.p_adjusted if self.against_baseline else math.nan

    @property
    def better_than_baseline(self) -> bool:
        """Significantly better at the level of the table."""
        return self.against_baseline is not None and self.against_baseline.outcome == "better"

    @property
    def worse_than_baseline(self) -> bool:
        """Significantly worse at the level of the table."""
        return self.against_baseline is not None and self.against_baseline.outcome == "worse"


@dataclass(frozen=True, kw_only=True)
class Tests:
    """The two families of tests of one comparison."""

    table: DifferenceTable
    better: Better
    level: float
    primary: dict[Hypothesis, Decision]
    """The hypotheses that were fixed before the run."""
    pairs: dict[frozenset[str], float]
    """Secondary: adjusted p of every pair, Holm over all pairs."""
    ahead: dict[frozenset[str], str]
    """Which of a pair is better on the seeds that were tested; empty where neither is."""

    def p(self, left: str, right: str) -> float:
        """Adjusted p of a pair: of its primary test where it has one, else the secondary one.

        NaN for a pair that is not compared.
        """
        for pair in (Hypothesis(left, right), Hypothesis(right, left)):
            if pair in self.primary:
                return self.primary[pair].p_adjusted
        return self.pairs.get(frozenset((left, right)), math.nan)

    def p_better(self, variant: str, other: str) -> float:
        """The same where the difference that was tested is in favor of a variant, else NaN.

        Where two have other seeds, their means may lie the other way round, and say nothing of it.
        """
        ahead = self.ahead.get(frozenset((variant, other))) == variant
        return self.p(variant, other) if ahead else math.nan

    def against(self, variant: str, reference: str | None) -> Decision | None:
        """The test of a variant against a reference; None where there is nothing to test."""
        if reference is None or frozenset((variant, reference)) not in self.pairs:
            return None
        found = self.primary.get(Hypothesis(variant, reference))
        if found is not None:
            return found
        other = self.primary.get(Hypothesis(reference, variant))
        difference = self.table.difference(variant, reference, self.level)
        if other is not None:
            return turned(other, difference)
        return secondary(difference, self.p(variant, reference), self.better, 1 - self.level)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All tests of one comparison."""

    lines: list[Ranked]
    """By mean, best first."""
    tests: "Tests"
    """Every test behind the lines."""


def rank(
    scores: Scores,
    better: Better,
    *,
    baseline: str | None = None,
    uniform: str | None = None,
    controls: Collection[str] = (),
    margin: float | None = None,
    level: float = 0.95,
    table: DifferenceTable | None = None,
) -> Ranking:
    """Rank variants by mean score; claims need pairs of the same seed.

    There are two families of tests, each with its own error rate of 1 - level. The primary one
    (`results.statistics.primary`) was fixed before the run. The secondary one has all pairs, since
    the best is chosen after looking; it makes the groups.

    Lines are in the order of their means. A rank is opened by the best variant left, and goes
    down to the first line that is separable from any line above it in that rank, so no two of a
    rank are separable. Two are separable where their difference on common seeds is significant and
    has the sign of the difference of their means, which it may not have where they have other
    seeds. A noisy variant further down may not be separable from the best either:
    `differs_from_best` says so, for its rank does not.

    Args:
        scores: Score by seed of each variant, finite; a variant without scores is left out. Equal
            means keep the order that they have here.
        better: Which side is best.
        baseline: Variant that all others are compared with.
        uniform: The uniform baseline.
        controls: Variants that are references, not contenders.
        margin: Largest difference without practical meaning, in the unit of the scores.
        level: Of the intervals and the claims.
        table: What tests these scores; None for tests at one look. Where seeds were added look by
            look, it is a `SequentialTable`.

    Raises:
        ValueError: The baseline has no scores, or a score is not finite.
    """
    known = {variant: by_seed for variant, by_seed in scores.items() if by_seed}
    if baseline is not None and baseline not in known:
        raise ValueError(f"baseline {baseline!r} has no scores; run it or name another baseline")
    table = ModeratedTable(known) if table is None else table
    hypotheses = primary_hypotheses(known, baseline=baseline, uniform=uniform, controls=controls)
    primary = primary_decisions(table, hypotheses, better, margin=margin, level=level)
    pairs, ahead = _all_pairs(table, known, better)
    found = Tests(
        table=table, better=better, level=level, primary=primary, pairs=pairs, ahead=ahead
    )
    return Ranking(lines=_lines(known, found, baseline, uniform), tests=found)


def _lines(scores: Scores, tests: Tests, baseline: str | None, uniform: str | None) -> list[Ranked]:
    """The variants by mean, best first, each with its rank and its tests."""
    sign, level = 1.0 if tests.better == "higher" else -1.0, tests.level
    means = {variant: t_interval([*by_seed.values()], level) for variant, by_seed in scores.items()}
    order = sorted(scores, key=lambda variant: -sign * _rounded(means[variant].estimate))
    place = {variant: at for at, variant in enumerate(order)}
    separable = {
        pair
        for pair, p in tests.pairs.items()
        if p < 1 - level and min(pair, key=place.__getitem__) == tests.ahead[pair]
    }
    ranks = _ranks(order, separable)
    return [
        Ranked(
            rank=ranks[variant],
            variant=variant,
            differs_from_best=frozenset((order[0], variant)) in separable,
            mean=means[variant],
            against_baseline=tests.against(variant, baseline),
            against_uniform=tests.against(variant, uniform),
        )
        for variant in order
    ]


def _all_pairs(
    table: DifferenceTable, scores: Scores, better: Better
) -> tuple[dict[frozenset[str], float], dict[frozenset[str], str]]:
    """Adjusted p of every pair, and which of the two is ahead on common seeds."""
    sign = 1.0 if better == "higher" else -1.0
    largest = max((abs(one) for by_seed in scores.values() for one in by_seed.values()), default=0)
    least = ORDER_OF_SUMS * largest
    found = {pair: table.difference(*pair) for pair in combinations(scores, 2)}
    adjusted = holm([one.p for one in found.values()])
    ahead = {}
    for (left, right), one in found.items():
        gap = sign * one.estimate  # not a number without a common seed
        ahead[frozenset((left, right))] = left if gap > least else right if gap < -least else ""
    return {frozenset(pair): p for pair, p in zip(found, adjusted, strict=True)}, ahead


def _rounded(mean: float) -> float:
    """Leave out what the order of a sum does to its last digits, which would break a tie."""
    return float(f"{mean:.12g}")


def _ranks(order: list[str], separable: set[frozenset[str]]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    group: list[str] = []
    for place, variant in enumerate(order, start=1):
        if any(frozenset((above, variant)) in separable for above in group):
            group = []
        group.append(variant)
        ranks[variant] = ranks[group[0]] if len(group) > 1 else place
    return ranks
