"""The verdict on a claim: what the paired seeds of its contrasts, and its computed numbers, show.

This is the only place that decides a claim, so that the test can be exchanged here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from results.statistics.decisions import holm
from results.statistics.moderated import ModeratedDifference, ModeratedTable

ClaimVerdict = Literal["supported", "contradicted", "equivalent", "undecided"]
LEVEL = 0.05
"""Error rate of a claim; Holm's correction is over the contrasts of one claim."""
POWER = 0.8
MOST_SEEDS = 200
"""Beyond so many seeds a contrast counts as not to be decided."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The scores of one contrast, and what was expected of them before the run."""

    left: Mapping[int, float]
    """Seed -> sum of the left sides."""
    right: Mapping[int, float]
    """Seed -> sum of the right sides and of the threshold."""
    expect: Literal["higher", "lower", "equal"]
    margin: float


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the seeds show of one contrast."""

    verdict: ClaimVerdict
    difference: ModeratedDifference
    """Left minus right."""
    p: float
    """Of "no difference", corrected."""
    p_outside: float
    """Of "the difference is at least the margin", corrected; 1 without a margin."""
    seeds_to_decide: int | None
    """Seeds with which 80% of runs would decide, if the difference is the one seen; None where
    that is unknown or more than `MOST_SEEDS`."""


def findings_of(observed: Sequence[Observed]) -> list[Finding]:
    """Decide every contrast of one claim.

    A difference is found where it is significant and at least the margin. It is refuted where it is
    significant the other way, or shown to lie inside the margin. Equality is shown inside the
    margin and refuted by a significant difference of at least the margin. All else is undecided.
    """
    differences = [_difference(one) for one in observed]
    ps = holm([one.p for one in differences])
    outside = holm(
        [
            gap.p_outside(one.margin) if one.margin else 1.0
            for gap, one in zip(differences, observed, strict=True)
        ]
    )
    tests = len(observed)
    return [
        Finding(
            verdict=_decided(one, gap.estimate, p, out),
            difference=gap,
            p=p,
            p_outside=out,
            seeds_to_decide=_seeds(one, gap, LEVEL / tests),
        )
        for one, gap, p, out in zip(observed, differences, ps, outside, strict=True)
    ]


def verdict_of(parts: Sequence[ClaimVerdict], needed: Literal["all", "any"]) -> ClaimVerdict:
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


def _difference(one: Observed) -> ModeratedDifference:
    """The plain paired t test where there are two series; the other code path is for tables."""
    if not one.left.keys() & one.right.keys():
        empty = {"left": {0: 0.0}, "right": {0: 0.0}}
        found = ModeratedTable(empty).difference("left", "right")
        return ModeratedDifference(
            estimate=math.nan,
            low=found.low,
            high=found.high,
            count=0,
            p=1.0,
            error=0.0,
            freedom=0.0,
        )
    table = ModeratedTable({"left": one.left, "right": one.right})
    return table.difference("left", "right", 1 - LEVEL)


def _decided(one: Observed, estimate: float, p: float, outside: float) -> ClaimVerdict:
    if math.isnan(estimate):
        return "undecided"
    if one.expect == "equal":
        if outside < LEVEL:
            return "equivalent"
        return "contradicted" if p < LEVEL and abs(estimate) >= one.margin else "undecided"
    signed = estimate if one.expect == "higher" else -estimate
    if p < LEVEL and signed > 0 and signed >= one.margin:
        return "supported"
    if (p < LEVEL and signed < 0) or outside < LEVEL:
        return "contradicted"
    return "undecided"


def _seeds(one: Observed, gap: ModeratedDifference, level: float) -> int | None:
    """Seeds that would decide, from the spread seen: a normal approximation, at least two."""
    if gap.count < 2 or not gap.error:
        return None
    spread = gap.error * math.sqrt(gap.count)
    away = abs(gap.estimate)
    room = one.margin - away
    if one.expect == "equal":
        distance = room if room > 0 else away
    else:
        # a difference below its margin is only ever refuted, inside the margin
        signed = gap.estimate if one.expect == "higher" else -gap.estimate
        distance = away if signed <= 0 or room <= 0 else room
    if not distance:
        return None
    from statistics import NormalDist

    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(POWER)
    seeds = max(2, math.ceil((z * spread / distance) ** 2) + 1)
    return seeds if seeds <= MOST_SEEDS else None
