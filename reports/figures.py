"""Line panels and scatter panels: small multiples that share one legend."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from reports.blocks import Figure, clean
from reports.style import INK, REST, LineStyle, draw, legend_text

COLUMNS = 3
MOST_LETTERS = 33
"""Of a title over a panel."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One variant's curve with its band."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One variant's place in a trade-off, with intervals on both axes."""

    name: str
    x: tuple[float, float, float]
    """Mean, low, high."""
    y: tuple[float, float, float]
    front: bool = False
    """No other variant is better on both axes."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Curve, ...] = ()
    points: tuple[Point, ...] = ()
    log_x: bool = False
    log_y: bool = False
    steps: bool = False
    """Draw lines as stairs: the best so far changes only at a trial."""
    ticks: tuple[float, ...] = ()
    """Places of the x ticks; matplotlib's own if empty."""
    levels: tuple[tuple[float, str], ...] = ()
    """Horizontal references such as chance."""


@dataclass(frozen=True)
class Legend:
    """Looks of the named variants and how they are called."""

    looks: Mapping[str, LineStyle]
    labels: Mapping[str, str]


def panels(
    key: str,
    words: Mapping[str, str],
    content: Sequence[Panel],
    legend: Legend,
    *,
    columns: int = COLUMNS,
    names: int = 4,
) -> Figure:
    """Draw panels in a grid under one legend.

    Args:
        key: Figure key, see `reports.style.draw`.
        words: `title`, `description` and `caption`.
        content: The panels, row by row.
        legend: Looks and labels of the variants; unnamed ones are gray.
        columns: Panels side by side.
        names: Entries of the legend side by side; fewer where they are long.

    """
    columns = min(columns, len(content))
    rows = math.ceil(len(content) / columns)
    width = {1: 5.2, 2: 7.6}.get(columns, 9.6)

    def paint(figure: Any) -> None:
        grid = figure.subplots(rows, columns, squeeze=False)
        for at, axes in enumerate(grid.flat):
            if at < len(content):
                _panel(axes, content[at], legend)
            else:
                axes.set_axis_off()
        _legend(figure, content, legend, names)

    return draw(key, words, paint, size=(width, 2.75 * rows + 0.75))


def _panel(axes: Any, panel: Panel, legend: Legend) -> None:
    axes.set_title(_cut(clean(panel.title)))
    axes.set_xlabel(clean(panel.x_label))
    axes.set_ylabel(clean(panel.y_label))
    _scales(axes, panel)
    for value, text in panel.levels:
        axes.axhline(value, color=REST, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        axes.annotate(
            clean(text),
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right",
            fontsize=7.5,
        )
    named = [name for name in legend.looks if any(line.name == name for line in panel.lines)]
    for line in panel.lines:
        if line.name not in legend.looks:
            axes.plot(line.x, line.y, color=REST, linewidth=0.8, zorder=1.5)
    for at, name in enumerate(reversed(named)):
        for line in panel.lines:
            if line.name == name:
                _line(axes, line, legend.looks[name], 3 + at / 10, steps=panel.steps)
    _points(axes, panel.points, legend)


def _scales(axes: Any, panel: Panel) -> None:
    # The default labels of logarithmic axes are mathematics, which we do not parse.
    if panel.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    if panel.ticks:
        axes.set_xticks(panel.ticks, labels=[f"{tick:g}" for tick in panel.ticks])
        axes.minorticks_off()


def _line(axes: Any, line: Curve, look: LineStyle, order: float, *, steps: bool) -> None:
    style = {"drawstyle": "steps-post"} if steps else {}
    every = max(1, len(line.x) // 6)
    axes.plot(
        line.x,
        line.y,
        color=look.color,
        linestyle=look.dash,
        marker=look.marker,
        markevery=every,
        zorder=order,
        **style,
    )
    if any(high > low for low, high in zip(line.low, line.high, strict=True)):
        band = {"step": "post"} if steps else {}
        axes.fill_between(
            line.x, line.low, line.high, color=look.color, alpha=0.15, linewidth=0, **band
        )


def _points(axes: Any, points: Sequence[Point], legend: Legend) -> None:
    for point in points:
        look = legend.looks.get(point.name, LineStyle(REST, "-", "o"))
        axes.errorbar(
            point.x[0],
            point.y[0],
            xerr=_arms(point.x),
            yerr=_arms(point.y),
            fmt=look.marker,
            color=look.color,
            markersize=6 if point.front else 5,
            markerfacecolor=look.color if point.front else "none",
            elinewidth=0.9,
            zorder=3,
        )
    front = sorted((point.x[0], point.y[0]) for point in points if point.front)
    if len(front) > 1:
        axes.plot(*zip(*front, strict=True), color=INK, linewidth=0.8, alpha=0.4, zorder=2)


def _arms(triple: tuple[float, float, float]) -> list[list[float]] | None:
    middle, low, high = triple
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return [[max(0.0, middle - low)], [max(0.0, high - middle)]]


def _legend(figure: Any, content: Sequence[Panel], legend: Legend, most: int) -> None:
    """One legend above all panels, with a last entry that counts the gray ones."""
    drawn = {line.name for panel in content for line in panel.lines}
    drawn |= {point.name for panel in content for point in panel.points}
    scatter = any(panel.points for panel in content)
    handles = [
        Line2D([], [], color=look.color, marker=look.marker, linestyle="" if scatter else look.dash)
        for name, look in legend.looks.items()
        if name in drawn
    ]
    labels = [legend_text(legend.labels.get(name, name)) for name in legend.looks if name in drawn]
    rest = len(drawn - set(legend.looks))
    if rest:
        mark = {"marker": "o", "markerfacecolor": "none", "linestyle": ""} if scatter else {}
        handles.append(Line2D([], [], color=REST, **mark))  # type: ignore[arg-type]
        labels.append(f"{rest} others")
    if handles:
        figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=min(most, len(handles)),
            handlelength=3.2,
            columnspacing=1.6,
        )


def _cut(title: str) -> str:
    """A title as long as its panel is wide; the tables have it whole."""
    return title if len(title) <= MOST_LETTERS else f"{title[: MOST_LETTERS - 1]}…"
