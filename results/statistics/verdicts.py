"""The verdict on a claim: what the paired seeds of its contrasts, and its computed numbers, show.

This is the only place that decides a claim, so that the test can be exchanged here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median
from typing import Literal, NamedTuple

from scipy import special

from bench.api.claim import SPREAD_SEEDS, Compared, Expected
from results.statistics.decisions import holm
from results.statistics.intervals import ROUNDING, t_quantile
from results.statistics.moderated import ModeratedDifference, ModeratedTable
from results.statistics.primary import POWER

ClaimVerdict = Literal["supported", "contradicted", "equivalent", "undecided"]
Needed = Literal["all", "any"]
LEVEL = 0.05
"""Error rate of a claim."""
MANY_SEEDS = 100
"""From here on a t distribution is as good as normal."""
SECOND_LEVEL = 0.025
"""Error rate of its second sample, so that both samples are wrong in at most 7.5% of claims."""
ROOM = 2.0
"""Margins that must be left to the end of a metric before a difference can be called too small."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The scores of one contrast, and what was expected of them before the run."""

    left: Mapping[int, float]
    """Seed -> sum of the left sides."""
    right: Mapping[int, float]
    """Seed -> sum of the right sides and of the threshold."""
    expect: Expected
    margin: float
    of: Compared = "mean"
    """Whether scores are compared, or their distances from the median of the common seeds."""
    room: float = math.inf
    """How far the mean of the right side lies from the end of the metric in the expected direction;
    infinite where nothing bounds it."""
    learned: bool = True
    """Whether the networks learned what the contrast asks of them."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the seeds show of one contrast."""

    verdict: ClaimVerdict
    difference: ModeratedDifference
    """Left minus right: of means, or of mean distances from the median."""
    p: float
    """Of "no difference"."""
    p_outside: float
    """Of "the difference is at least the margin": in the expected direction, or either way where
    equality is expected; 1 without a margin."""
    seeds_to_decide: int | None
    """Seeds with which 80% of runs would decide, if the difference is the one seen; None where
    that is unknown."""
    still: bool = False
    """Whether a difference was expected, and no seed has any."""
    cramped: bool = False
    """Whether it is too small, and the metric leaves little or no room for a larger one."""
    unlearned: bool = False
    """Whether a network has not learned what the contrast asks of it."""


def findings_of(
    observed: Sequence[Observed], needed: Needed = "all", level: float = LEVEL, again: float = 0.0
) -> list[Finding]:
    """Decide every contrast of one claim.

    A difference is found where it is significantly larger than the margin. It is refuted where it
    is significant the other way, or shown to be smaller than the margin. Equality is shown inside
    the margin and refuted by a difference that is significantly larger. All else is undecided.

    Where a difference was expected and no seed has any, nothing is shown: both sides are at a limit
    of the metric, such as 0 or the whole budget of steps, or they computed the same. A difference
    is not too small where the right side leaves less than two margins to the end of the metric, and
    networks that have not learned their task decide nothing.

    Where all contrasts must hold, a claim is wrongly supported only if each is, so that Holm's
    correction is for what refutes; where one is enough, it is for what supports.

    Args:
        observed: The contrasts.
        needed: Whether all must hold, or one is enough.
        level: Error rate of the claim.
        again: Error rate of another sample, for the seeds that would decide; 0 for the same.
    """
    gaps = [_difference(one, level) for one in observed]
    plain = [gap.p for gap in gaps]
    still = [one.expect != "equal" and same_on_both_sides(one) for one in observed]
    outside = [
        _short(one, gap) if one.margin and _enough(one, gap) and not same else 1.0
        for gap, one, same in zip(gaps, observed, still, strict=True)
    ]
    beyond = [
        gap.p_beyond(one.margin) if _enough(one, gap) else 1.0
        for gap, one in zip(gaps, observed, strict=True)
    ]
    held = [_Ps(*ps) for ps in zip(plain, beyond, outside, strict=True)]
    adjusted = zip(holm(plain), holm(beyond), holm(outside), strict=True)
    refuted = [_Ps(*ps) for ps in adjusted]
    if needed == "any":
        held, refuted = refuted, held
    found = []
    for at, (one, gap) in enumerate(zip(observed, gaps, strict=True)):
        verdict = _decided(one, gap.estimate, held[at], refuted[at], level)
        cramped = _too_small(one, gap, refuted[at], level) and one.room < ROOM * one.margin
        found.append(
            Finding(
                verdict="undecided" if cramped or not one.learned else verdict,
                difference=gap,
                p=plain[at],
                p_outside=outside[at],
                seeds_to_decide=_seeds(one, gap, again or level),
                still=still[at],
                cramped=cramped,
                unlearned=not one.learned,
            )
        )
    return found


def verdict_of(parts: Sequence[ClaimVerdict], needed: Needed) -> ClaimVerdict:
    """Join the verdicts of the parts of a claim.

    Args:
        parts: One verdict a contrast, and one of the computed numbers where there are some.
        needed: Whether all parts must hold, or one is enough.

    Returns:
        `equivalent` where all that holds is that there is no difference.
    """
    held = [part in ("supported", "equivalent") for part in parts]
    against = [part == "contradicted" for part in parts]
    if parts and (all(held) if needed == "all" else any(held)):
        holding = {part for part, holds in zip(parts, held, strict=True) if holds}
        return "equivalent" if holding == {"equivalent"} else "supported"
    if parts and (any(against) if needed == "all" else all(against)):
        return "contradicted"
    return "undecided"


class _Ps(NamedTuple):
    """P values of one contrast, for one purpose."""

    same: float
    """Of "no difference"."""
    beyond: float
    """Of "the difference is at most the margin", on the side of the mean."""
    outside: float
    """Of "the difference is at least the margin"."""


def _short(one: Observed, gap: ModeratedDifference) -> float:
    """P value of a difference that is at least the margin: the expected one, or of either sign."""
    if one.expect == "equal":
        return gap.p_outside(one.margin)
    turned = replace(gap, estimate=-gap.estimate)
    return (turned if one.expect == "lower" else gap).p_short(one.margin)


def _too_small(one: Observed, gap: ModeratedDifference, refuted: _Ps, level: float) -> bool:
    """Whether a difference is refuted by its size alone, not by its sign."""
    if one.expect == "equal":
        return False
    signed = gap.estimate if one.expect == "higher" else -gap.estimate
    other_way = refuted.same < level and signed < 0
    return refuted.outside < level and not other_way


def _difference(one: Observed, level: float) -> ModeratedDifference:
    """The plain paired t test, which a table of two is: sums of sides have no table of their own.

    Of distances from the median it is a test of spread (Brown & Forsythe, 1974) for pairs of seeds.
    Without a common seed nothing is known, and too few seeds say nothing about a spread.
    """
    left, right = _compared(one)
    if not left:
        return ModeratedDifference(
            estimate=math.nan,
            low=-math.inf,
            high=math.inf,
            count=0,
            p=1.0,
            error=0.0,
            freedom=0.0,
        )
    table = ModeratedTable({"left": left, "right": right})
    gap = table.difference("left", "right", 1 - level)
    return gap if _enough(one, gap) else replace(gap, p=1.0)


def distances(scores: Mapping[int, float]) -> dict[int, float]:
    """How far the score of each seed lies from the median of all; 0 for what is rounding."""
    middle = median(scores.values())
    least = ROUNDING * max(map(abs, scores.values()))
    gaps = {seed: abs(score - middle) for seed, score in scores.items()}
    return {seed: gap if gap > least else 0.0 for seed, gap in gaps.items()}


def _enough(one: Observed, gap: ModeratedDifference) -> bool:
    """Whether there are as many seeds as the test needs to hold its level."""
    return one.of == "mean" or gap.count >= SPREAD_SEEDS


def same_on_both_sides(one: Observed) -> bool:
    """Whether every common seed has what is compared alike on both sides, but for rounding.

    Sides are sums, whose last digits depend on the order of their terms.
    """
    left, right = _compared(one)
    scale = max(map(abs, (*left.values(), *right.values())), default=0.0)
    return bool(left) and all(abs(left[seed] - right[seed]) <= ROUNDING * scale for seed in left)


def _compared(one: Observed) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """What is compared on the common seeds: scores, or distances from their median."""
    common = sorted(one.left.keys() & one.right.keys())
    left, right = ({seed: side[seed] for seed in common} for side in (one.left, one.right))
    if one.of == "spread" and common:
        return distances(left), distances(right)
    return left, right


def _decided(one: Observed, estimate: float, held: _Ps, refuted: _Ps, level: float) -> ClaimVerdict:
    """The verdict of a contrast, by the p values for holding and those for refuting."""
    if math.isnan(estimate):
        return "undecided"
    if one.expect == "equal":
        if held.outside < level:
            return "equivalent"
        return "contradicted" if refuted.beyond < level else "undecided"
    signed = estimate if one.expect == "higher" else -estimate
    if held.beyond < level and signed > 0:
        return "supported"
    if (refuted.same < level and signed < 0) or refuted.outside < level:
        return "contradicted"
    return "undecided"


def _seeds(one: Observed, gap: ModeratedDifference, level: float) -> int | None:
    """Seeds that would decide by a t test, from the spread seen; at least two.

    Where no seed differs from another, those of the sign test. Holm's correction over the parts of
    the claim is not in it.
    """
    # what was expected is decided on its side of the margin
    signed = -gap.estimate if one.expect == "lower" else gap.estimate
    distance = abs(one.margin - (abs(signed) if one.expect == "equal" else signed))
    if gap.count < 2 or not distance:
        return None
    least = 2 if one.of == "mean" else SPREAD_SEEDS
    if not gap.error:
        return max(least, 1 + math.ceil(-math.log2(level)))
    spread = gap.error * math.sqrt(gap.count)
    normal = NormalDist()
    reach = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)
    seeds = max(least, math.ceil((reach * spread / distance) ** 2))
    # few seeds have wider tails than a normal distribution; many have the same
    while seeds < MANY_SEEDS and _reach(seeds, level) * spread > distance * math.sqrt(seeds):
        seeds += 1
    return seeds


def _reach(seeds: int, level: float) -> float:
    """Standard errors that a difference needs, so that 80% of runs with these seeds find it."""
    freedom = seeds - 1
    return t_quantile(1 - level, freedom) + float(special.stdtrit(freedom, POWER))
