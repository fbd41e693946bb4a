"""Quality against the bytes of state that decoding keeps: what a memory of some size is worth."""

import math

from bench.api.headline import learned_in_the_end
from reports.blocks import Block, QualityCost, Section
from reports.figures import quality_cost_figure
from reports.folder import RunFolder
from reports.quality_cost import points_of, seen_within
from reports.ranked_table.comparison import Comparison
from results.catalog import CatalogVariant

METRIC = "state_bytes"
LEAST_VARIANTS, LEAST_SIZES = 4, 3
"""Of a comparison that has a figure."""
MOST_POINTS = 200
"""All there are: what a small state loses is as much of the answer as what a large one keeps."""
CAPTION = (
    "{metric}, mean over seeds with its 95% t interval, or from the least to the greatest seed "
    "where the interval would leave the range of the metric. It is drawn against the bytes that "
    "one sequence leaves behind: caches of keys and values, states of recurrences, and what "
    "projections remember, of all layers after the longest sequence of training. Variants that "
    "keep every key need more with every token; recurrences do not. No variant with an equal or "
    "smaller state has a better mean than one on the line. Variants that failed a check of their "
    "certificate are left out, those of which no seed is above uniform attention on validation, "
    "and outputs that read words said before, whose bytes are not counted."
)


TITLE = "Quality against the size of the state"


def state_section(folder: RunFolder) -> Section | None:
    """A figure for each comparison whose variants keep states of several sizes; None without."""
    blocks: list[Block] = [
        quality_cost_figure(one, f"state-{at}") for at, one in enumerate(_drawn(folder), 1)
    ]
    return Section(key="state", title=TITLE, blocks=tuple(blocks)) if blocks else None


def fullest_state_section(folder: RunFolder) -> Section | None:
    """The figure with most variants, for the summary; None without one."""
    drawn = _drawn(folder)
    if not drawn:
        return None
    fullest = quality_cost_figure(max(drawn, key=lambda one: len(one.points)), "state-most")
    return Section(key="state-most", title=TITLE, blocks=(fullest,), group="summary")


def _drawn(folder: RunFolder) -> list[QualityCost]:
    found = (quality_by_state(comparison) for comparison in folder.comparisons)
    return [one for one in found if one is not None]


def quality_by_state(comparison: Comparison) -> QualityCost | None:
    """Score and state of every variant; None where too few have both, or all are of one size."""
    known = comparison.catalog
    name = learned_in_the_end(comparison.metric)
    metric = known.metric(name)
    sizes = {one: comparison.cells.trained(one, METRIC).estimate for one in comparison.variants}
    located = [
        (variant, seen_within(by_seed.values(), metric.limits), sizes[variant])
        for variant, by_seed in comparison.stored.final(name).items()
        if variant not in comparison.red
        and not _output_remembers(known.variant(variant))
        and not comparison.lost_every_seed(variant)
        and math.isfinite(sizes.get(variant, math.nan))
    ]
    several = len({size for _, _, size in located}) >= LEAST_SIZES
    if len(located) < LEAST_VARIANTS or not several or metric.better == "none":
        return None
    return QualityCost(
        points=points_of(known, located, metric.better, metric.limits, MOST_POINTS),
        quality_title=metric.axis,
        cost_title=known.metric(METRIC).axis,
        better=metric.better,
        limits=metric.limits,
        title=f"Quality against the size of the state: {comparison.title}",
        caption=CAPTION.format(metric=metric.title),
    )


def _output_remembers(variant: CatalogVariant) -> bool:
    """Whether its output is not the usual one; the others read earlier words for themselves."""
    parts = variant.made_of.split(", ")
    return variant.family == "output" or any(one.startswith("output=") for one in parts)
