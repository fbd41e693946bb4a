"""Quality against the cost of training, of every variant: the data of the first figure."""

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from reports.blocks import PointKind, QualityCost, QualityPoint, clean
from reports.catalog import Catalog
from reports.folder import RunFolder
from reports.needs import decides, needs
from reports.numbers import Seen, leaves_range, plain
from reports.ranked_table.comparison import Comparison
from reports.training_cost import METRIC, CostNoise, noise_of, relative_cost
from results.statistics import (
    Interval,
    PairOfScores,
    pareto_front,
    probability_of_improvement,
    t_interval,
)

MOST_POINTS = 20
"""More cannot be identified in one drawing."""
LEAST_USES = 3
"""Of a variant in a figure over all tasks."""
LEAST_VARIANTS = 4
"""Of a figure over all tasks; with fewer the figure shows the one with most ranks."""

Located = tuple[str, Interval, float]
"""Variant, quality and cost."""


def quality_cost(folder: RunFolder) -> QualityCost | None:
    """Points of all tasks where enough variants share some, else of a comparison of the choices."""
    found = [one for one in folder.comparisons if decides(one)]
    if not found or not folder.catalog.ranks:
        return None
    noise = noise_of(folder.comparisons)
    shared = shared_with(found, folder.catalog.baseline)
    often = {
        name: many
        for name, many in shared.items()
        # tasks of one use are dependent, so that their spread tells nothing of other uses
        if len({use_of(one) for one in many}) >= LEAST_USES
    }
    if len(often) < LEAST_VARIANTS:
        shown = [need.evidence for need in needs(folder)]
        return _one_comparison(max(shown, key=distinct_ranks), noise)
    return _all_tasks(folder.catalog, often, noise)


def distinct_ranks(comparison: Comparison) -> int:
    """How many ranks the contenders have that a drawing has room for."""
    ranks = [
        line.rank for name, line in comparison.compared.items() if name in comparison.contenders
    ]
    return len({*ranks[:MOST_POINTS]})


def shared_with(found: Sequence[Comparison], other: str) -> dict[str, list[Comparison]]:
    """Comparisons in which each variant is compared beside another one."""
    shared: dict[str, list[Comparison]] = {}
    for comparison in found:
        if other in comparison.compared:
            for name in comparison.compared:
                if name != other:
                    shared.setdefault(name, []).append(comparison)
    return shared


def improvement(found: Sequence[Comparison], variant: str, other: str) -> Interval:
    """Probability that a run of a variant is better than a run of another, over shared uses."""
    pairs: list[PairOfScores] = []
    uses: list[str] = []
    for one in found:
        if one.better != "none":
            mine, theirs = ([*one.scores[name].values()] for name in (variant, other))
            pairs.append((mine, theirs, one.better))
            uses.append(use_of(one))
    seed = zlib.crc32(f"{variant} {other}".encode())
    return probability_of_improvement(pairs, np.random.default_rng(seed), uses=uses)


def use_of(comparison: Comparison) -> str:
    """The use of attention that a comparison counts with; the task where it has none."""
    known = comparison.catalog.task(comparison.task)
    return clean(known.counts_with or known.family) or comparison.task


def of_each_use(found: Sequence[Comparison]) -> list[list[Comparison]]:
    """Comparisons of one use together; tasks of a use are dependent."""
    groups: dict[str, list[Comparison]] = {}
    for one in found:
        groups.setdefault(use_of(one), []).append(one)
    return [*groups.values()]


def _all_tasks(
    catalog: Catalog, often: dict[str, list[Comparison]], noise: CostNoise
) -> QualityCost:
    base = catalog.baseline
    level = Interval(estimate=0.5, low=0.5, high=0.5, count=0)
    located: list[Located] = [(base, level, 1.0)]
    located += [
        (name, improvement(many, name, base), relative_cost(many, name).estimate)
        for name, many in often.items()
    ]
    label = catalog.label(base)
    return QualityCost(
        points=points_of(catalog, located, "higher", factor=noise.factor),
        quality_title=f"Probability of being better than {label}",
        cost_title=f"Training step relative to {label}",
        limits=(0.0, 1.0),
        title="Quality against cost over all tasks",
        caption=(
            f"Probability that a run is better than a run of {label}, averaged over the uses "
            f"that both took part in (at least {LEAST_USES}), with its 95% bootstrap "
            f"interval. Variants took part in different tasks. {_about_front(noise)}"
        ),
    )


def _one_comparison(comparison: Comparison, noise: CostNoise) -> QualityCost | None:
    if comparison.better == "none":
        return None
    known, metric = comparison.catalog, comparison.ranked_by
    relative = math.isfinite(relative_cost([comparison], known.baseline).estimate)
    located = [
        (
            name,
            seen_within(comparison.scores[name].values(), metric.limits),
            relative_cost([comparison], name).estimate
            if relative
            else comparison.cells.trained(name, METRIC).estimate,
        )
        for name in comparison.compared
    ]
    step = "Training step"
    title = f"{step} relative to {known.label(known.baseline)}" if relative else f"{step} (ms)"
    return QualityCost(
        points=points_of(known, located, comparison.better, metric.limits, factor=noise.factor),
        quality_title=metric.axis,
        cost_title=title,
        better=comparison.better,
        limits=metric.limits,
        title=f"Quality against cost: {comparison.title}",
        caption=(
            "Mean test score with its 95% interval over seeds, or from the least to the greatest "
            "seed where the interval would leave the range of the metric. "
            f"{_about_front(noise)} Of the comparisons behind the choices this one is drawn, "
            f"because it has the most ranks. At most {MOST_POINTS} variants are drawn."
        ),
    )


def _about_front(noise: CostNoise) -> str:
    """What the line means, and from where on two costs differ."""
    return (
        "No contender on the line is beaten by another in both quality and cost, where costs "
        f"within a factor of {plain(noise.factor)} ({noise.source}) are the same."
    )


def points_of(
    catalog: Catalog,
    located: Sequence[Located],
    better: str,
    limits: tuple[float, float] = (0.0, 1.0),
    most: int = MOST_POINTS,
    factor: float = 1.0,
) -> tuple[QualityPoint, ...]:
    """Points to draw, best first: the front and the references always, then the best.

    Args:
        catalog: Names and marks of the variants.
        located: Variants with their qualities and costs.
        better: Better side of the quality.
        limits: Least and greatest value of the quality.
        most: How many points.
        factor: Costs within it count as the same for the front, on which no control can be.
    """
    side: Literal["higher", "lower"] = "lower" if better == "lower" else "higher"
    sign = -1.0 if side == "lower" else 1.0
    known = [one for one in located if math.isfinite(one[1].estimate) and math.isfinite(one[2])]
    kinds = [kind_of(catalog, name) for name, _, _ in known]
    pairs = [
        (quality.estimate, cost if kind in ("variant", "baseline") else math.nan)
        for kind, (_, quality, cost) in zip(kinds, known, strict=True)
    ]
    front = pareto_front(pairs, (side, "lower"), (1.0, factor))
    found = [
        (kind, name, quality, cost, on)
        for kind, (name, quality, cost), on in zip(kinds, known, front, strict=True)
    ]
    found.sort(key=lambda one: (one[0] == "variant" and not one[4], -sign * one[2].estimate))
    return tuple(
        QualityPoint(
            name=catalog.label(name),
            quality=quality.estimate,
            low=_within(quality.low, quality.estimate, limits),
            high=_within(quality.high, quality.estimate, limits),
            cost=cost,
            on_front=on,
            kind=kind,
        )
        for kind, name, quality, cost, on in found[:most]
    )


def kind_of(catalog: Catalog, variant: str) -> PointKind:
    """What a variant is in a comparison."""
    if variant == catalog.baseline:
        return "baseline"
    if catalog.variant(variant).uniform_baseline:
        return "uniform"
    return "control" if catalog.variant(variant).is_control else "variant"


def seen_within(values: Iterable[float], limits: tuple[float, float]) -> Interval:
    """Mean with its t interval, or with the extremes of the seeds where a table prints these.

    Args:
        values: One a seed.
        limits: Least and greatest value that the metric allows.
    """
    known = [*values]
    mean, seen = t_interval(known), Seen.of(known)
    if leaves_range(mean.low, mean.high, limits, seen):
        return replace(mean, low=seen.low, high=seen.high)
    return mean


def _within(bound: float, estimate: float, limits: tuple[float, float]) -> float:
    """A bound inside the range of its metric; the estimate where nothing is known."""
    return min(max(bound, limits[0]), limits[1]) if math.isfinite(bound) else estimate
