"""A ranking of variants on one task that shows ties as ties."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from results.statistics.decisions import holm
from results.statistics.intervals import Interval, PairedDifference, paired_difference, t_interval
from results.statistics.pareto import Better

Scores = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One line of a ranking."""

    rank: int
    """Place of the first line of its group, from 1; never better than that of a better mean."""
    variant: str
    differs_from_best: bool
    """Significantly different from the first line; a line on a later rank may still be tied."""
    mean: Interval
    """Mean score over the seeds of this variant, with its t interval."""
    difference: PairedDifference | None
    """Score minus the baseline's on common seeds; None for the baseline, or without one."""
    p_adjusted: float
    """p of the difference, Holm-adjusted over all claims of the table; NaN without a difference."""
    better_than_baseline: bool
    """Significantly better at the level of the table."""
    worse_than_baseline: bool
    """Significantly worse at the level of the table."""


def rank(
    scores: Scores, better: Better, *, baseline: str | None = None, level: float = 0.95
) -> list[Ranked]:
    """Rank variants by mean score; claims need pairs of the same seed.

    All claims of the table, "differs from the baseline" and "ranks behind", come from one family
    of tests over all pairs, because the best is chosen after looking: at most 1 - level of tables
    without a true difference hold any claim. Pairs with the baseline share half of that error.

    Lines are in the order of their means. A rank is opened by the best variant left, and goes
    down to the first line that is separable from any line above it in that rank, so no two of a
    rank are separable. A noisy variant further down may not be separable from the best either:
    `differs_from_best` says so, for its rank does not.

    Args:
        scores: Score by seed of each variant, finite; a variant without scores is left out. Equal
            means keep the order that they have here.
        better: Which side is best.
        baseline: Variant that all others are compared with.
        level: Of the intervals and the claims.

    Returns:
        Lines by mean, best first.

    Raises:
        ValueError: The baseline has no scores, or a score is not finite.
    """
    known = {variant: by_seed for variant, by_seed in scores.items() if by_seed}
    if baseline is not None and baseline not in known:
        raise ValueError(f"baseline {baseline!r} has no scores; run it or name another baseline")
    sign = 1.0 if better == "higher" else -1.0
    means = {variant: t_interval([*by_seed.values()], level) for variant, by_seed in known.items()}
    order = sorted(known, key=lambda variant: -sign * _rounded(means[variant].estimate))
    adjusted = adjusted_pairs(known, baseline)
    separable = {pair for pair, p in adjusted.items() if p < 1 - level}
    ranks = _ranks(order, separable)
    lines = []
    for variant in order:
        difference, p = None, math.nan
        if baseline is not None and variant != baseline:
            difference = _on_common_seeds(known[variant], known[baseline], level)
            p = adjusted[frozenset((variant, baseline))]
        gain = sign * difference.estimate if difference is not None and p < 1 - level else 0.0
        lines.append(
            Ranked(
                rank=ranks[variant],
                variant=variant,
                differs_from_best=frozenset((order[0], variant)) in separable,
                mean=means[variant],
                difference=difference,
                p_adjusted=p,
                better_than_baseline=gain > 0,
                worse_than_baseline=gain < 0,
            )
        )
    return lines


def _on_common_seeds(
    left: Mapping[int, float], right: Mapping[int, float], level: float
) -> PairedDifference:
    seeds = sorted(left.keys() & right.keys())
    return paired_difference([left[seed] for seed in seeds], [right[seed] for seed in seeds], level)


def adjusted_pairs(scores: Scores, baseline: str | None) -> dict[frozenset[str], float]:
    """Holm-adjusted p of the difference of every pair; pairs with the baseline get half the error.

    These are the claims of `rank` on the same scores.
    """
    pairs = list(combinations(scores, 2))
    p_values = [_on_common_seeds(scores[left], scores[right], 0.95).p for left, right in pairs]
    num_main = sum(baseline in pair for pair in pairs)
    num_other = len(pairs) - num_main
    weights = [1 / num_main if baseline in pair else 1 / num_other for pair in pairs]
    return {frozenset(pair): p for pair, p in zip(pairs, holm(p_values, weights), strict=True)}


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
