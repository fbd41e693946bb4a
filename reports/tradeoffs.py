"""Figures of quality against what it costs: delay, step time and memory."""

import math
from collections.abc import Mapping

from reports.blocks import Section
from reports.catalog import uncapitalized
from reports.curves import figures_section
from reports.figures import Legend, Panel, Point
from reports.folder import RunFolder
from reports.quality_cost import seen_within
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.costs import timed
from reports.sections.metric_tables import DELAY
from results.statistics import Interval, pareto_front, t_interval

CROSSES = (
    "Crosses are 95% t intervals, or go from the lowest to the highest seed where an interval "
    "would leave the range of the metric."
)


def delay_section(folder: RunFolder, legend: Legend) -> Section | None:
    """Quality against how far a reader lags behind; None where nothing reads while it writes."""
    content = []
    for comparison in folder.comparisons:
        delays = comparison.stored.final(DELAY)
        limits = comparison.catalog.metric(DELAY).limits
        lags = {name: _as_printed(by_seed, limits) for name, by_seed in delays.items()}
        known = {name: lag for name, lag in lags.items() if name in comparison.means}
        panel = _pareto_panel(
            comparison, known, 1.0, uncapitalized(comparison.catalog.metric(DELAY).axis)
        )
        if panel.points:
            content.append(panel)
    if not content:
        return None
    words = {
        "title": "Quality against delay",
        "description": "Test score of each variant against its average lagging.",
        "caption": "Filled marks are on the front: no variant has a better mean with less delay. "
        "Only the delay of attention counts, not that of an encoder that reads both ways or of a "
        f"summary of the whole source. {CROSSES}",
    }
    return figures_section("delay", words["title"], words, content, legend, none="")


def pareto_section(folder: RunFolder, legend: Legend) -> Section:
    """Quality against step time and against memory."""
    content = []
    for comparison in folder.comparisons:
        steps = {
            name: comparison.cells.trained(name, "train_step_time_ms") for name in comparison.means
        }
        memory = {
            name: timed(comparison, name, "peak_memory_bytes", folder.costs) for name in steps
        }
        for costs, unit, label in (
            (steps, 1.0, "training step (ms)"),
            (memory, 1e6, "peak memory (MB)"),
        ):
            panel = _pareto_panel(comparison, costs, unit, label)
            if panel.points:
                content.append(panel)
    front = (
        "Filled marks are on the front: no variant has a better mean and a lower cost, however "
        "little lower. The figure of quality against cost takes costs within the noise for the "
        f"same, so its front may differ. {CROSSES} Where they overlap, the place on the front is "
        "not certain."
        if folder.catalog.ranks
        else "No front is drawn, because this preset ranks nothing."
    )
    words = {
        "title": "Scores against step time and memory, as measured",
        "description": "Test score of each variant against its step time and peak memory.",
        "caption": f"{front} Variants with a red certificate are left out.",
    }
    none = "Scores or costs are missing."
    return figures_section("pareto", words["title"], words, content, legend, none=none, columns=2)


def _pareto_panel(
    comparison: Comparison, costs: dict[str, Interval], unit: float, label: str
) -> Panel:
    names = [
        name
        for name, cost in costs.items()
        if name not in comparison.red and math.isfinite(cost.estimate)
    ]
    better = comparison.better
    front = [False] * len(names)
    if comparison.catalog.ranks and better != "none":
        pairs = [(comparison.means[name].estimate, costs[name].estimate) for name in names]
        front = pareto_front(pairs, (better, "lower"))
    limits = comparison.ranked_by.limits
    return Panel(
        title=comparison.title,
        x_label=label,
        y_label=comparison.ranked_by.axis,
        limits=limits,
        points=tuple(
            Point(
                name=name,
                x=_triple(costs[name], unit),
                y=_triple(_as_printed(comparison.scores[name], limits), 1.0),
                front=on,
            )
            for name, on in zip(names, front, strict=True)
        ),
    )


def _as_printed(by_seed: Mapping[int, float], limits: tuple[float, float]) -> Interval:
    """Mean with the bounds that a table prints; without any where no spread was seen."""
    values = [*by_seed.values()]
    mean = t_interval(values)
    return seen_within(values, limits) if math.isfinite(mean.half_width) else mean


def _triple(interval: Interval, unit: float) -> tuple[float, float, float]:
    return interval.estimate / unit, interval.low / unit, interval.high / unit
