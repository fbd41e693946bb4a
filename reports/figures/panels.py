"""Small multiples: curves that are named at their ends, and points with intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reports.blocks import Figure
from reports.figures import labels
from reports.figures.axes import Scale, border, frame, level, scale_over, short
from reports.figures.labels import Box, Tag
from reports.figures.style import LineStyle
from reports.figures.svg import cut, figure, number, panel, segment, tooltip, track, width_of, words

COLUMNS = 3
HEIGHT = 236.0
WIDTHS = {1: 560.0, 2: 420.0}
"""Of one panel (pixels), by panels side by side; `NARROW` for more."""
NARROW = 400.0
MOST_ROOM = 104.0
"""For names at the ends of curves (pixels)."""


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
    """Places of the x ticks; round values if empty."""
    levels: tuple[tuple[float, str], ...] = ()
    """Horizontal references such as chance."""
    borders: tuple[tuple[float, str], ...] = ()
    """Vertical references such as the length of training."""
    limits: tuple[float, float] = (-math.inf, math.inf)
    """Least and greatest value that the metric of the y axis allows; nothing is drawn outside."""
    whole: "Panel | None" = None
    """Panel of which it is a part, whose y axis it has."""


@dataclass(frozen=True)
class Legend:
    """Looks of the named variants and how they are called."""

    looks: Mapping[str, LineStyle]
    labels: Mapping[str, str]

    def label(self, name: str) -> str:
        """How a variant is called."""
        return self.labels.get(name, name)


def panels(
    key: str,
    words_: Mapping[str, str],
    content: Sequence[Panel],
    legend: Legend,
    *,
    columns: int = COLUMNS,
) -> Figure:
    """Draw panels in a grid; each names what it shows beside the curves and points.

    Args:
        key: Figure key, prefix of the ids inside it.
        words_: `title`, `description` and `caption`.
        content: The panels, row by row.
        legend: Styles and labels of the variants; others are gray and named on hovering.
        columns: Panels side by side.

    """
    columns = min(columns, len(content))
    wide = WIDTHS.get(columns, NARROW)
    parts = [
        panel(at % columns * wide, at // columns * HEIGHT, wide, HEIGHT, _panel(one, legend, wide))
        for at, one in enumerate(content)
    ]
    rows = math.ceil(len(content) / columns)
    drawn = {line.name for one in content for line in one.lines}
    drawn |= {point.name for one in content for point in one.points}
    rest = len(drawn - set(legend.looks))
    height = rows * HEIGHT + (18 if rest else 0)
    if rest:
        note = words(8, 12, f"gray: {rest} others, named on hovering", "t")
        parts.append(panel(0, rows * HEIGHT, columns * wide, 18, [note]))
    return figure(key, words_, parts, columns * wide, height)


def _panel(one: Panel, legend: Legend, wide: float) -> Iterator[str]:
    named = [line for line in one.lines if line.name in legend.looks]
    room = max((width_of(legend.label(line.name), 10.0) for line in named), default=0.0)
    right = wide - 14 - (min(MOST_ROOM, room) + 18 if named else 0)
    x, y = _scales(one, (50.0, right), (HEIGHT - 44, 28.0))
    yield words(50, 16, cut(one.title, wide - 60), "h")
    yield from frame(x, y, (one.x_label, cut(one.y_label, HEIGHT - 40, 10.0)), x_ticks=one.ticks)
    for value, text in one.levels:
        if y.low <= value <= y.high:
            yield from level(x, y, value, text)
    for value, text in one.borders:
        if x.low <= value <= x.high:
            yield from border(x, y, value, text)
    for line in one.lines:
        if line.name not in legend.looks:
            yield _plain(line, x, y, legend, stairs=one.steps)
    for line in reversed(_in_order(named, legend)):
        yield _curve(line, x, y, legend, stairs=one.steps)
    yield from _ends(_in_order(named, legend), x, y, legend)
    yield from _points(one, x, y, legend, wide)


def _in_order(lines: Sequence[Curve], legend: Legend) -> list[Curve]:
    return sorted(lines, key=lambda line: legend.looks[line.name].number)


def _scales(
    one: Panel, across: tuple[float, float], down: tuple[float, float]
) -> tuple[Scale, Scale]:
    """Scales that show every mean, and as much of the intervals as is near the means."""
    xs = [v for line in one.lines for v in line.x] + [point.x[0] for point in one.points]
    middle = [v for line in one.lines for v in line.y] + [point.y[0] for point in one.points]
    ends = [v for line in one.lines for v in (*line.low, *line.high)]
    ends += [v for point in one.points for v in point.y[1:]]
    finite = [v for v in middle if math.isfinite(v)]
    levels = [value for value, _ in one.levels]
    if finite:
        # an interval of two seeds can be a hundred times as wide as all means lie apart
        reach = (max(finite) - min(finite)) or abs(finite[0]) or 1.0
        low, high = min(finite) - reach, max(finite) + reach
        ends = [min(high, max(low, v)) for v in ends if math.isfinite(v)]
        levels = [v for v in levels if low <= v <= high]
    x = scale_over(xs, across, log=one.log_x, margin=0.02 if one.lines else 0.08)
    y = scale_over([*middle, *ends, *levels], down, log=one.log_y, limits=one.limits)
    return x, y if one.whole is None else _scales(one.whole, across, down)[1]


def _plain(line: Curve, x: Scale, y: Scale, legend: Legend, *, stairs: bool) -> str:
    drawn = track(_places(line.x, line.y, x, y), stairs=stairs)
    name = tooltip(legend.label(line.name))
    return f'<g class="r"><path class="l" d="{drawn}">{name}</path></g>'


def _curve(line: Curve, x: Scale, y: Scale, legend: Legend, *, stairs: bool) -> str:
    look = legend.looks[line.name]
    places = _places(line.x, line.y, x, y)
    parts = [tooltip(legend.label(line.name))]
    if any(high > low for low, high in zip(line.low, line.high, strict=True)):
        upper = _places(line.x, line.high, x, y)
        lower = _places(line.x, line.low, x, y)
        parts.append(f'<path class="b" d="{track([*upper, *reversed(lower)])}z"/>')
    parts.append(f'<path class="l" d="{track(places, stairs=stairs)}"/>')
    parts.append(_mark(places[-1], look, "p"))
    return f'<g class="{look.css}">{"".join(parts)}</g>'


def _places(
    xs: Sequence[float], ys: Sequence[float], x: Scale, y: Scale
) -> list[tuple[float, float]]:
    return [(x.at(a), y.at(b)) for a, b in zip(xs, ys, strict=True)]


def _mark(place: tuple[float, float], look: LineStyle | None, css: str) -> str:
    marker = look.marker if look else LineStyle(0).marker
    at = f"{number(place[0])} {number(place[1])}"
    return f'<path class="{css}" transform="translate({at})" d="{marker}"/>'


def _ends(lines: Sequence[Curve], x: Scale, y: Scale, legend: Legend) -> Iterator[str]:
    """Names at the right, each near the end of its curve."""
    wanted = [y.at(line.y[-1]) for line in lines]
    for line, end, at in zip(lines, wanted, labels.spread(wanted, y.end, y.start), strict=True):
        last = x.at(line.x[-1])
        look = legend.looks[line.name]
        drawn = segment(last + 5, end, x.end + 9, at, "i") + _mark((x.end + 14, at), look, "p")
        yield f'<g class="{look.css}">{drawn}</g>'
        yield words(x.end + 21, at + 3.5, cut(legend.label(line.name), MOST_ROOM, 10.0), "n")


def _points(one: Panel, x: Scale, y: Scale, legend: Legend, wide: float) -> Iterator[str]:
    front = sorted((point.x[0], point.y[0]) for point in one.points if point.front)
    if len(front) > 1:
        yield f'<path class="f" d="{track([(x.at(a), y.at(b)) for a, b in front])}"/>'
    rank = {name: at for at, name in enumerate(legend.looks)}
    known = sorted(one.points, key=lambda p: (p.name not in rank, rank.get(p.name, 0)))
    for point in reversed(known):
        yield _point(point, x, y, legend)
    named = [p for p in known if p.front or p.name in legend.looks]
    named.sort(key=lambda p: not p.front)
    tags = [Tag(x.at(p.x[0]), y.at(p.y[0]), legend.label(p.name)) for p in named]
    others = [
        Box(a - 3, b - 3, a + 3, b + 3)
        for p in known
        if p not in named
        for a, b in [(x.at(p.x[0]), y.at(p.y[0]))]
    ]
    area = Box(x.start, y.end - 8, wide, y.start)
    for at, box in labels.place(tags, area, others).items():
        yield from labels.drawn(tags[at], box)


def _point(point: Point, x: Scale, y: Scale, legend: Legend) -> str:
    look = legend.looks.get(point.name)
    place = (x.at(point.x[0]), y.at(point.y[0]))
    said = f"{legend.label(point.name)}: {point.y[0]:.3g} at {short(point.x[0])}"
    arms = ""
    if all(map(math.isfinite, (*point.x, *point.y))):
        arms = f"M{number(x.at(point.x[1]))} {number(place[1])}H{number(x.at(point.x[2]))}"
        arms += f"M{number(place[0])} {number(y.at(point.y[1]))}V{number(y.at(point.y[2]))}"
        arms = f'<path class="w" d="{arms}"/>'
    mark = _mark(place, look, "p" if point.front else "o")
    return f'<g class="{look.css if look else "r"}">{tooltip(said)}{arms}{mark}</g>'
