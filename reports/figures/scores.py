"""Scores of a comparison: a line each with its interval, best first."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.blocks import Figure
from reports.figures.axes import Scale, scale_over, short
from reports.figures.style import MARKERS
from reports.figures.svg import cut, figure, number, panel, segment, tooltip, words

WIDE, ROW, TOP, FOOT, NAMES = 560.0, 20.0, 8.0, 38.0, 170.0
STYLES = {"variant": ("s1", 0), "baseline": ("s0", 1), "control": ("s2", 4)}
"""Class of the style sheet, and marker, by kind of line."""


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    """One mean."""

    name: str
    kind: str
    """`variant`, `baseline` or `control`."""
    mean: float
    low: float
    """-inf where the score is known to no interval; drawn as the mean alone."""
    high: float


def scores_figure(
    key: str,
    said: tuple[str, str, str],
    lines: Sequence[ScoreLine],
    limits: tuple[float, float],
) -> Figure:
    """Draw each mean with its interval on one scale.

    Args:
        key: Figure key.
        said: Title, caption, and what the axis shows with its unit.
        lines: At least one, in the order in which they are drawn.
        limits: Least and greatest value that a score can have.
    """
    title, caption, axis = said
    height = TOP + ROW * len(lines) + FOOT
    told = ", ".join(f"{one.name} {one.mean:.3g}" for one in lines)
    said_of_it = {"title": title, "description": f"{axis}: {told}.", "caption": caption}
    parts = [panel(0, 0, WIDE, height, _content(lines, limits, axis, height))]
    return figure(key, said_of_it, parts, WIDE, height)


def _content(
    lines: Sequence[ScoreLine], limits: tuple[float, float], axis: str, height: float
) -> Iterator[str]:
    values = [value for one in lines for value in (one.mean, *_ends(one))]
    x = scale_over(values, (NAMES, WIDE - 20.0), limits=limits)
    bottom = height - FOOT
    yield segment(x.start, bottom, x.end, bottom, "a")
    for tick in x.ticks:
        yield segment(x.at(tick), TOP, x.at(tick), bottom, "g")
        yield words(x.at(tick), bottom + 13, short(tick), "t m")
    yield words((x.start + x.end) / 2, bottom + 30, cut(axis, x.end - x.start), "t m")
    for at, one in enumerate(lines):
        yield from _line(one, x, TOP + ROW * (at + 0.5))


def _line(one: ScoreLine, x: Scale, y: float) -> Iterator[str]:
    css, marker = STYLES[one.kind]
    low, high = _ends(one)
    said = f"{one.name}: {one.mean:.3g}" + (f" ({low:.3g} to {high:.3g})" if high > low else "")
    yield words(NAMES - 8, y + 4, cut(one.name, NAMES - 12), "t e")
    arms = f"M{number(x.at(low))} {number(y)}H{number(x.at(high))}"
    place = f'transform="translate({number(x.at(one.mean))} {number(y)})"'
    yield (
        f'<g class="{css}">{tooltip(said)}<path class="w" d="{arms}"/>'
        f'<path class="p" d="{MARKERS[marker]}" {place}/></g>'
    )


def _ends(one: ScoreLine) -> tuple[float, float]:
    if math.isfinite(one.low) and math.isfinite(one.high):
        return one.low, one.high
    return one.mean, one.mean
