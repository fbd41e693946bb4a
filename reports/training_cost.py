"""What a training step costs beside that of the baseline, and from where on two costs differ."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from reports.blocks import NO_VALUE
from reports.ranked_table.cells import NOTHING
from reports.ranked_table.comparison import Comparison
from results.statistics import Interval, ratio_interval

METRIC = "train_step_time_ms"
ABOUT_THE_SAME = "about the same"
LEAST = 0.01
"""Noise that every clock has, as a fraction."""
ASSUMED = 1.3
"""Factor in the place of that of an A/A control, which those of the preset `quick` have."""


@dataclass(frozen=True)
class CostNoise:
    """From where on two costs of a run differ."""

    factor: float = ASSUMED
    """Costs whose ratio lies within it may differ by noise alone."""
    measured: bool = False
    """Whether A/A controls of the run say so."""

    @property
    def source(self) -> str:
        """Where the factor is from, in words."""
        return "the A/A control" if self.measured else "assumed, for want of an A/A control"


def relative_cost(found: Iterable[Comparison], variant: str, other: str | None = None) -> Interval:
    """Training step of a variant over that of another, with its 95% interval over paired seeds.

    Of several comparisons it is the geometric mean. Its interval is then that of the seeds which
    all of them have in common.

    Args:
        found: Comparisons; those in which one of the two has no time are left out.
        variant: Whose cost it is.
        other: The baseline if None.

    Returns:
        A dimensionless ratio; NaN if unknown, without bounds if a single seed is known.
    """
    pairs = [_logs(one, variant, other or one.catalog.baseline) for one in found]
    pairs = [pair for pair in pairs if pair]
    if not pairs:
        return NOTHING
    common = sorted(set.intersection(*(set(pair) for pair in pairs)))
    if not common:
        ratio = math.exp(fmean(fmean(pair.values()) for pair in pairs))
        return Interval(estimate=ratio, low=0.0, high=math.inf, count=0)
    return ratio_interval([fmean(pair[seed] for pair in pairs) for seed in common])


def noise_of(found: Iterable[Comparison]) -> CostNoise:
    """How far apart two costs of a run are by noise alone, as its A/A controls show.

    It is twice as far from 1 as the interval of the cost of the baseline beside itself reaches, as
    for the verdicts on timings, over all seeds of all comparisons that have an A/A control. Without
    two such seeds it is assumed.
    """
    logs = [
        log
        for comparison in found
        for name in comparison.compared
        if comparison.catalog.variant(name).aa_control
        for log in _logs(comparison, name, comparison.catalog.baseline).values()
    ]
    bounds = ratio_interval(logs) if logs else NOTHING
    if not math.isfinite(bounds.half_width):
        return CostNoise()
    half_width = max(abs(bounds.low - 1), abs(bounds.high - 1))
    return CostNoise(1 + max(LEAST, 2 * half_width), measured=True)


def differs(cost: Interval, noise: CostNoise) -> bool:
    """Whether a cost is not 1: its whole interval lies on one side of 1 and of the noise."""
    return cost.high < 1 / noise.factor or cost.low > noise.factor


def is_same(cost: Interval, noise: CostNoise) -> bool:
    """Whether a cost is taken for 1 where variants are put in order."""
    return 1 / noise.factor <= cost.estimate <= noise.factor


def in_order(cost: Interval, noise: CostNoise) -> float:
    """A cost for sorting: 1 where it is taken for 1, infinite where it is unknown."""
    if not math.isfinite(cost.estimate):
        return math.inf
    return 1.0 if is_same(cost, noise) else cost.estimate


def cost_text(cost: Interval, noise: CostNoise) -> str:
    """A cost with its interval, or that it is about the same; a dash where it is unknown.

    It is about the same where the whole interval lies within the noise. A cost that is neither
    that nor clearly different from 1 has “unclear” before it.

    >>> noise = CostNoise(1.3)
    >>> cost_text(Interval(estimate=2.2, low=1.94, high=2.5, count=3), noise)
    '2.2× (1.9–2.5)'
    >>> cost_text(Interval(estimate=0.85, low=0.84, high=0.86, count=3), noise)
    'about the same'
    >>> cost_text(Interval(estimate=1.08, low=0.79, high=1.47, count=3), noise)
    'unclear, 1.08× (0.79–1.47)'
    """
    if not math.isfinite(cost.estimate):
        return NO_VALUE
    if 1 / noise.factor <= cost.low and cost.high <= noise.factor:
        return ABOUT_THE_SAME
    told = "" if differs(cost, noise) else "unclear, "
    if not math.isfinite(cost.high):
        return f"{told}{cost.estimate:.2g}×"
    digits = 0 if cost.estimate >= 9.95 else 1 if cost.estimate >= 1.95 else 2
    middle, low, high = (f"{one:.{digits}f}" for one in (cost.estimate, cost.low, cost.high))
    return f"{told}{middle}× ({low}\N{EN DASH}{high})"


def _logs(comparison: Comparison, variant: str, other: str) -> dict[int, float]:
    """Logarithm of the ratio of two step times by seed, on the processor of most cells."""
    times = comparison.stored.final(METRIC, "")
    mine, theirs = times.get(variant, {}), times.get(other, {})
    away = _elsewhere(comparison, (variant, other))
    return {
        seed: math.log(mine[seed] / theirs[seed])
        for seed in sorted(mine.keys() & theirs.keys() - away)
        if mine[seed] > 0 and theirs[seed] > 0
    }


def _elsewhere(comparison: Comparison, variants: Iterable[str]) -> set[int]:
    """Seeds that one of some variants ran on another processor than most cells."""
    asked = [name for name in variants if comparison.cells.elsewhere(name)]
    if not asked:
        return set()
    frame = comparison.frame
    away = frame["variant"].isin(asked) & (frame["processor"] != comparison.cells.processor)
    return {int(seed) for seed in frame.loc[away, "seed"].unique()}
