"""Computed numbers of a claim: a panel each, with the range in which they must lie."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.blocks import Figure
from reports.figures.axes import frame, scale_over, short
from reports.figures.style import MARKERS
from reports.figures.svg import cut, figure, number, panel, segment, tooltip, words

WIDE, SIDE = 560.0, 20.0
LINE, LINE_AXIS, PLOT, HEAD, GAP = 18.0, 18.0, 100.0, 34.0, 8.0
"""Heights (pixels): of a number line and its ticks, of a plot, of two lines above, below all."""
PLOT_LEFT, PLOT_BELOW = 64.0, 34.0
LOG_FROM = 16.0
"""Greatest place over least from which on an axis of places is logarithmic."""
INSIDE, OUTSIDE = MARKERS[0], MARKERS[1]
"""A filled disk lies inside of the bounds, a hollow square outside."""


@dataclass(frozen=True, kw_only=True)
class BoundPanel:
    """The numbers of one bound."""

    title: str
    expected: str
    """The bound in words."""
    axis: str
    """What the places count."""
    values: Mapping[float | None, float]
    """Place on the axis -> number; at least one. The place of a single number is not drawn."""
    low: float
    """-inf where nothing bounds it from below."""
    high: float
    """inf where nothing bounds it from above."""

    @property
    def ends(self) -> list[float]:
        """The bounds that there are."""
        return sorted({end for end in (self.low, self.high) if math.isfinite(end)})

    @property
    def outside(self) -> int:
        """How many numbers lie outside."""
        return sum(not self.low <= value <= self.high for value in self.values.values())

    @property
    def height(self) -> float:
        """Of its panel (pixels)."""
        body = LINE + LINE_AXIS if len(self.values) == 1 else PLOT + PLOT_BELOW
        return HEAD + body + GAP


def bounds_figure(key: str, title: str, panels: Sequence[BoundPanel]) -> Figure:
    """Draw the numbers of each bound over their axis, or on a line where there is one alone.

    Args:
        key: Figure key.
        title: What the claim says.
        panels: At least one.
    """
    parts, top = [], 0.0
    for one in panels:
        drawn = _line(one) if len(one.values) == 1 else _plot(one)
        parts.append(panel(0, top, WIDE, one.height, [*_head(one), *drawn]))
        top += one.height
    said = "; ".join(f"{one.title}: {_said(one)}, {_judged(one)}" for one in panels)
    words_ = {
        "title": title,
        "description": f"Computed numbers: {said}",
        "caption": "Computed numbers. They must lie in the gray range, where there is one, whose "
        "ends are dotted; a filled disk lies inside, a hollow square outside.",
    }
    return figure(f"claim-{key}-numbers", words_, parts, WIDE, top)


def _said(one: BoundPanel) -> str:
    low, high = min(one.values.values()), max(one.values.values())
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _head(one: BoundPanel) -> list[str]:
    return [
        words(SIDE, 13, cut(one.title, WIDE - 2 * SIDE), "h"),
        words(SIDE, 27, f"{_said(one)}; {_judged(one)}", "t"),
    ]


def _judged(one: BoundPanel) -> str:
    """What was expected, and whether it is so."""
    if not one.ends:
        return one.expected
    result = f"{one.outside} of {len(one.values)} outside" if one.outside else "inside"
    return f"expected {one.expected}: {result}"


def _line(one: BoundPanel) -> list[str]:
    """A single number on a scale of its own."""
    (value,) = one.values.values()
    x = scale_over([value, *one.ends], (SIDE, WIDE - SIDE), margin=0.15)
    top, bottom = HEAD, HEAD + LINE
    left, right = x.at(max(one.low, x.low)), x.at(min(one.high, x.high))
    return [
        *([_band(left, top, right - left, LINE)] if one.ends else []),
        *(segment(x.at(end), top, x.at(end), bottom, "v") for end in one.ends),
        segment(x.start, bottom, x.end, bottom, "a"),
        *(words(x.at(tick), bottom + 13, short(tick), "t m") for tick in x.ticks),
        _marker(x.at(value), (top + bottom) / 2, value, one),
    ]


def _plot(one: BoundPanel) -> list[str]:
    """Numbers over the places of their axis."""
    places = {x or 0.0: value for x, value in one.values.items()}
    least, most = min(places), max(places)
    x = scale_over(
        places, (PLOT_LEFT, WIDE - SIDE), log=least > 0 and most / least >= LOG_FROM, margin=0.03
    )
    y = scale_over([*places.values(), *one.ends], (HEAD + PLOT, HEAD), margin=0.1)
    top, bottom = y.at(min(one.high, y.high)), y.at(max(one.low, y.low))
    return [
        *([_band(x.start, top, x.end - x.start, bottom - top)] if one.ends else []),
        *frame(x, y, (one.axis.replace("_", " "), "")),
        *(segment(x.start, y.at(end), x.end, y.at(end), "v") for end in one.ends),
        *(_marker(x.at(place), y.at(value), value, one) for place, value in places.items()),
    ]


def _band(left: float, top: float, width: float, height: float) -> str:
    """Where numbers must lie."""
    box = f'x="{number(left)}" y="{number(top)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect class="s0 b" {box}/>'


def _marker(x: float, y: float, value: float, one: BoundPanel) -> str:
    inside = one.low <= value <= one.high
    css, outline = ("s0 p", INSIDE) if inside else ("s0 o", OUTSIDE)
    place = f'transform="translate({number(x)} {number(y)})"'
    return f'<path class="{css}" {place} d="{outline}">{tooltip(f"{value:.4g}")}</path>'
