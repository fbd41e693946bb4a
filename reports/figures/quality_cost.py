"""Quality against cost of every variant: the figure of the first screen."""

import math
from collections import Counter
from collections.abc import Iterator

from reports.blocks import Figure, QualityCost, QualityPoint
from reports.figures import labels
from reports.figures.axes import Scale, frame, scale_over
from reports.figures.labels import Box, Tag
from reports.figures.style import MARKERS
from reports.figures.svg import figure, number, panel, tooltip, track

WIDTH, HEIGHT = 590.0, 420.0
NARROW = 350.0
"""Width on a telephone (pixels)."""
LOG_FROM = 8.0
"""Ratio of the costs from which on their axis is logarithmic."""
STYLES = {"variant": ("s1", 0), "baseline": ("s0", 1), "uniform": ("s2", 4), "control": ("s3", 3)}
"""Class of the style sheet, and marker, by kind of point."""
KINDS = {"baseline": ", the baseline", "uniform": ", uniform weights", "control": ", a control"}


def quality_cost_figure(
    data: QualityCost, key: str = "quality-cost", width: float = WIDTH
) -> Figure:
    """Draw every point with its interval, the names that have room, and the Pareto front.

    Points without room for their name have it in their tooltip, as all others have.

    Args:
        data: The points and what the axes mean.
        key: Figure key, prefix of the ids inside it.
        width: Of the figure (pixels), so that a narrow screen gets letters of the same size.

    """
    ranked = [point for point in data.points if _usable(point)]
    names = ", ".join(point.name for point in ranked if point.on_front)
    said = {
        "title": data.title or "Quality against cost",
        "description": f"{data.quality_title} against {data.cost_title} of {len(ranked)} variants"
        f"{f'; on the Pareto front: {names}' if names else ''}.",
        "caption": data.caption,
    }
    parts = [panel(0, 0, width, HEIGHT, _content(data, ranked, width))]
    return figure(key, said, parts, width, HEIGHT)


def _usable(point: QualityPoint) -> bool:
    return math.isfinite(point.quality) and math.isfinite(point.cost)


def _content(data: QualityCost, points: list[QualityPoint], width: float) -> Iterator[str]:
    costs = [point.cost for point in points]
    log = bool(costs) and min(costs) > 0 and max(costs) >= LOG_FROM * min(costs)
    values = [v for p in points for v in (p.quality, *_whisker(p))]
    x = scale_over(costs, (54.0, width - 16), log=log, margin=0.1)
    y = scale_over(values, (HEIGHT - 42, 12.0), limits=data.limits)
    yield from frame(x, y, (data.cost_title, data.quality_title))
    yield from _front(points, x, y)
    same_cost = Counter(costs)
    order = sorted(points, key=lambda p: _importance(p, data.better, same_cost[p.cost]))
    for point in reversed(order):
        yield _point(point, x, y)
    tags = [Tag(x.at(p.cost), y.at(p.quality), p.name, "h" if p.on_front else "") for p in order]
    area = Box(x.start + 2, 2, width - 2, HEIGHT - 44)
    whiskers = [
        Box(x.at(p.cost) - 1, y.at(b), x.at(p.cost) + 1, y.at(a))
        for p in order
        for a, b in [_whisker(p)]
    ]
    for at, box in labels.place(tags, area, thin=whiskers).items():
        yield from labels.drawn(tags[at], box)


def _whisker(point: QualityPoint) -> tuple[float, float]:
    """Ends of the interval; the point itself where it has none."""
    if math.isfinite(point.low) and math.isfinite(point.high):
        return point.low, point.high
    return point.quality, point.quality


def _importance(point: QualityPoint, better: str, same_cost: int) -> tuple[bool, bool, int, float]:
    """Who is named first where room is short.

    The front, then references, then those whose cost few others have (as a cache of all keys is
    that of many), then the best.
    """
    sign = -1.0 if better == "higher" else 1.0
    return not point.on_front, point.kind == "variant", same_cost, sign * point.quality


def _front(points: list[QualityPoint], x: Scale, y: Scale) -> Iterator[str]:
    """Stairs: for each cost the best quality that it buys."""
    places = sorted((p.cost, p.quality) for p in points if p.on_front)
    if len(places) > 1:
        drawn = track([(x.at(a), y.at(b)) for a, b in places], stairs=True)
        yield f'<path class="f" d="{drawn}"/>'


def _point(point: QualityPoint, x: Scale, y: Scale) -> str:
    css, marker = STYLES[point.kind]
    across, up = x.at(point.cost), y.at(point.quality)
    low, high = _whisker(point)
    said = f"{point.name}{KINDS.get(point.kind, '')}: {point.quality:.3g}"
    if high > low:
        said += f" ({low:.3g} to {high:.3g})"
    said += f", cost {point.cost:.3g}" + (", on the Pareto front" if point.on_front else "")
    arms = f"M{number(across)} {number(y.at(low))}V{number(y.at(high))}"
    mark = f'd="{MARKERS[marker]}" transform="translate({number(across)} {number(up)})"'
    filled = "p" if point.on_front else "o"
    # the wide ring cannot be seen; it makes the point easy to hover over
    return (
        f'<g class="{css}">{tooltip(said)}<path class="w" d="{arms}"/>'
        f'<circle class="k" cx="{number(across)}" cy="{number(up)}" r="9"/>'
        f'<path class="{filled}" {mark}/></g>'
    )
