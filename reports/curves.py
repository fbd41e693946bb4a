"""Figures of a run: what is drawn from which rows."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from bench.api.headline import learned_in_the_end
from reports.blocks import Block, Figure, Paragraph, Section
from reports.catalog import red_reasons
from reports.figures import Curve, Legend, Panel, panels
from reports.figures.style import looks
from reports.folder import RunFolder
from reports.numbers import Seen, leaves_range
from reports.ranked_table.comparison import Comparison
from reports.sections.metric_tables import NUMBERED, part_title, parts
from reports.speed_rows import TIMED_TOGETHER, place_text
from results.frame import SECONDS, curve

BANDS = (
    "Bands are 95% t intervals over seeds, or go from the lowest to the highest seed where an "
    "interval would leave the range of the metric. A {kind} without a band has one seed, or seeds "
    "that do not differ{rest}."
)
GRAY = "gray lines have none"
"""Of bands: they would cover one another."""
ENDED = "A seed whose training ended before that of others keeps its last value in the mean."
MOST_PANELS = 12
AXES = (("step", "step"), ("cpu_s", "CPU time (s)"), ("wall_s", "wall time (s)"))
"""What learning curves are drawn against; training on a GPU has wall time."""
DRAWN = ("forward_time_ms", "forward_backward_time_ms", "decode_step_time_ms", "peak_memory_bytes")


ANY_OF_A_VARIANT = ("revisions", "protocol", "impl", "backbone")
"""In what the seeds of one variant may differ within a comparison."""


def legend_of(folder: RunFolder) -> Legend:
    """One look per variant for the whole report.

    Those with a color are chosen by what they mean: the baseline, uniform attention, then what is
    significantly better than the baseline most often, and what is tied with the best most often.
    """
    catalog = folder.catalog
    better, tied = Counter[str](), Counter[str]()
    for comparison in folder.comparisons:
        better.update(line.variant for line in comparison.ranking if line.better_than_baseline)
        tied.update(line.variant for line in comparison.leading)
    fair = {name for comparison in folder.comparisons for name in comparison.variants}
    fair |= {outcome.cell.variant for outcome in folder.outcomes}
    fair = {name for name in fair if not red_reasons(folder.certificates, name)}

    def order(name: str) -> tuple[bool, bool, bool, int, int, str]:
        uniform = catalog.variant(name).uniform_baseline
        control = catalog.variant(name).is_control
        is_baseline = name == catalog.baseline
        return not is_baseline, not uniform, control, -better[name], -tied[name], name

    names = sorted(fair, key=order)
    return Legend(looks(names), catalog.labels([*names]))


def learning_section(folder: RunFolder, legend: Legend) -> Section:
    """Validation score against steps and against seconds."""
    walls = (one.frame["axis"].eq("wall_s").any() for one in folder.comparisons)
    clock = "wall time on a GPU" if any(walls) else "CPU time"
    content = [
        panel
        for comparison in folder.comparisons
        for axis, label in AXES
        # an area along training is made of the curve of another metric
        for metric in (learned_in_the_end(comparison.metric),)
        if (panel := curve_panel(comparison, axis, label, "validation", metric)).lines
    ]
    words = {
        "title": "Learning curves",
        "description": f"Validation score of each variant against training steps and {clock}.",
        "caption": f"Validation score against steps (left) and {clock} (right). "
        f"{about_bands(content, legend)} {ENDED}",
    }
    none = "No learning curve was stored."
    return figures_section(
        "learning", "Learning curves", words, content, legend, none=none, columns=2
    )


def length_section(folder: RunFolder, legend: Legend) -> Section:
    """Test score against the length or the difficulty of the input."""
    content = [
        curve_panel(comparison, axis, part_title(axis), "test", metric)
        for comparison in folder.comparisons
        for metric, axis in parts(comparison)
        if axis not in NUMBERED
    ]
    words = {
        "title": "Quality against length and difficulty",
        "description": "Test score of each variant in parts of the test, by length or difficulty.",
        "caption": "Test score of the inputs of one length or difficulty. "
        f"{about_bands(content, legend)}",
    }
    none = "No task of this run divides its test."
    return figures_section("length", words["title"], words, content, legend, none=none)


def speed_figures(folder: RunFolder, legend: Legend) -> list[Figure]:
    """Time and memory against length, one figure for what was timed together."""
    summary = folder.speed.dropna(subset="length")
    red = summary["variant"].map(lambda name: bool(red_reasons(folder.certificates, name)))
    summary = summary[~red.astype(bool)]
    figures = []
    for at, (place, group) in enumerate(summary.groupby([*TIMED_TOGETHER], sort=True), start=1):
        content = [
            panel for metric in DRAWN if (panel := _speed_panel(folder, metric, group)).lines
        ]
        words = {
            "title": f"Time and memory against length, {place_text([*place], summary)}",
            "description": "Cost of one call of each variant at several lengths, log-log.",
            "caption": "Medians with 10% and 90% quantiles of the rounds, on logarithmic axes: "
            f"the slope is the growth exponent.{_no_bands(content, legend)}",
        }
        if content:
            figures.append(panels(f"speed-{at}", words, content, legend, columns=2))
    return figures


def about_bands(content: Sequence[Panel], legend: Legend) -> str:
    """What bands over seeds are, and which lines of some panels have none."""
    if has_gray(content, legend):
        return BANDS.format(kind="named line", rest=f"; {GRAY}")
    return BANDS.format(kind="line", rest="")


def _no_bands(content: Sequence[Panel], legend: Legend) -> str:
    """A sentence more where some lines are gray."""
    return " Gray lines are medians alone." if has_gray(content, legend) else ""


def has_gray(content: Sequence[Panel], legend: Legend) -> bool:
    """Whether some panels draw more variants than there are looks, the rest in gray."""
    return any(line.name not in legend.looks for panel in content for line in panel.lines)


def figures_section(
    key: str,
    title: str,
    words: dict[str, str],
    content: Sequence[Panel],
    legend: Legend,
    *,
    none: str,
    columns: int = 3,
) -> Section:
    """Pages of panels, so that no figure is too tall to read."""
    pages = [content[at : at + MOST_PANELS] for at in range(0, len(content), MOST_PANELS)]
    blocks: list[Block] = [
        panels(f"{key}-{at}", words, page, legend, columns=columns)
        for at, page in enumerate(pages, start=1)
    ]
    return Section(key=key, title=title, blocks=tuple(blocks or [Paragraph(none)]))


def curve_panel(
    comparison: Comparison, axis: str, x_label: str, split: str, metric: str = ""
) -> Panel:
    """One comparison's values along an axis of a split; of the ranking metric if none is named."""
    metric = metric or comparison.metric
    # a mean over seeds, whichever revision or protocol of a variant they are of
    alike = comparison.frame.assign(**dict.fromkeys(ANY_OF_A_VARIANT, ""))
    table = curve(alike, metric, axis, split)
    known = comparison.catalog
    limits = known.metric(metric).limits
    seeds = _seeds(comparison, metric, axis, split)
    levels: tuple[Literal["chance", "ceiling"], ...] = ()
    if metric == comparison.metric:
        levels = ("chance", "ceiling")
    return Panel(
        title=comparison.title,
        x_label=x_label,
        y_label=known.metric(metric).axis,
        limits=limits,
        lines=tuple(
            _within(_line(str(name), group), seeds.get(str(name), ()), axis, limits)
            for name, group in table.groupby("variant")
        ),
        levels=tuple(
            (value, key)
            for key in levels
            if (value := known.level(comparison.task, key)) is not None
        ),
    )


def _seeds(
    comparison: Comparison, metric: str, axis: str, split: str
) -> dict[str, list[Mapping[float, float]]]:
    """Values along an axis of each seed of each variant."""
    if split == "validation":
        curves = comparison.stored.curves(metric, axis)
        return {name: [*by_seed.values()] for name, by_seed in curves.items()}
    found: dict[str, dict[int, dict[float, float]]] = {}
    for (name, x), by_seed in comparison.stored.parts(metric, axis).items():
        for seed, value in by_seed.items():
            found.setdefault(name, {}).setdefault(seed, {})[x] = value
    return {name: [*by_seed.values()] for name, by_seed in found.items()}


def _within(
    line: Curve, seeds: Sequence[Mapping[float, float]], axis: str, limits: tuple[float, float]
) -> Curve:
    """A curve whose band goes from seed to seed where an interval would leave the range."""
    values = [_along(one, line.x, axis) for one in seeds]
    low, high = [*line.low], [*line.high]
    for at, bounds in enumerate(zip(line.low, line.high, strict=True)):
        seen = Seen.of(one[at] for one in values if math.isfinite(one[at]))
        if leaves_range(*bounds, limits, seen):
            low[at], high[at] = seen.low, seen.high
    return replace(line, low=tuple(low), high=tuple(high))


def _along(points: Mapping[float, float], places: Sequence[float], axis: str) -> list[float]:
    """What a seed adds to the mean at each place of a curve (`results.frame.curve`); NaN: nothing.

    The n-th points are averaged over seconds. A seed that ended keeps its last value.
    """
    xs, ys = [*points], [*points.values()]
    if axis in SECONDS:
        return [*ys, *[ys[-1]] * len(places)][: len(places)]
    if axis == "step":
        return [float(value) for value in np.interp(places, xs, ys, left=math.nan)]
    return [points.get(place, math.nan) for place in places]


def _line(
    name: str,
    table: pd.DataFrame,
    columns: Sequence[str] = ("x", "mean", "low", "high"),
    unit: float = 1.0,
) -> Curve:
    x, mean, low, high = ([float(value) for value in table[column]] for column in columns)
    return Curve(
        name=name,
        x=tuple(x),
        y=tuple(value / unit for value in mean),
        low=tuple(_bound(value, middle) / unit for value, middle in zip(low, mean, strict=True)),
        high=tuple(_bound(value, middle) / unit for value, middle in zip(high, mean, strict=True)),
    )


def _bound(value: float, middle: float) -> float:
    return value if math.isfinite(value) else middle


def _speed_panel(folder: RunFolder, metric: str, group: pd.DataFrame) -> Panel:
    rows = group[group["metric"] == metric].sort_values("length", kind="stable")
    memory = metric.endswith("_bytes")
    known = folder.catalog.metric(metric)
    columns = ("length", "median", "q10", "q90")
    unit = 1e6 if memory else 1.0
    return Panel(
        title=known.title,
        x_label="length (tokens)",
        y_label="MB" if memory else known.unit,
        lines=tuple(
            _line(str(name), part, columns, unit) for name, part in rows.groupby("variant")
        ),
        log_x=True,
        log_y=True,
        ticks=tuple(sorted(float(length) for length in rows["length"].unique())),
    )
