"""Differences of a claim: a line each, with its interval, zero, and the margin fixed before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.blocks import Figure
from reports.figures.axes import scale_over, short
from reports.figures.svg import cut, figure, number, panel, segment, tooltip, words

WIDE, ROW, HEAD = 560.0, 30.0, 18.0


@dataclass(frozen=True, kw_only=True)
class ContrastLine:
    """One difference."""

    title: str
    estimate: float
    low: float
    """-inf where nothing bounds it; drawn as the estimate alone."""
    high: float
    margin: float
    equal: bool
    """Whether both margins are drawn, for equality was expected."""
    sign: float
    """1 if the left side was expected to be higher, -1 if lower."""


def contrasts_figure(key: str, title: str, lines: Sequence[ContrastLine], interval: str) -> Figure:
    """Draw each difference on a scale of its own panel.

    Args:
        key: Figure key.
        title: What the claim says.
        lines: At least one.
        interval: Which interval is drawn, such as "95% interval".
    """
    parts = [
        panel(0, at * (ROW + 2 * HEAD), WIDE, ROW + 2 * HEAD, _line(one))
        for at, one in enumerate(lines)
    ]
    said = "; ".join(f"{one.title}: {one.estimate:+.3g}" for one in lines)
    words_ = {
        "title": title,
        "description": f"Differences: {said}",
        "caption": f"Mean difference over seeds with its {interval}; the dotted lines are zero "
        "and the margin.",
    }
    return figure(f"claim-{key}", words_, parts, WIDE, len(lines) * (ROW + 2 * HEAD))


def _line(one: ContrastLine) -> list[str]:
    bounded = math.isfinite(one.low) and math.isfinite(one.high)
    ends = [one.low, one.high] if bounded else []
    edges = [one.sign * one.margin, *([-one.margin] if one.equal else [])]
    x = scale_over([one.estimate, 0.0, *ends, *edges], (20.0, WIDE - 20.0))
    middle, bottom = HEAD + ROW / 2, HEAD + ROW
    parts = [words(20, 13, cut(one.title, WIDE - 40), "h")]
    parts.append(segment(x.start, bottom, x.end, bottom, "a"))
    parts += [words(x.at(tick), bottom + 13, short(tick), "t m") for tick in x.ticks]
    for edge in sorted({0.0, *edges}):
        parts.append(segment(x.at(edge), HEAD + 2, x.at(edge), bottom, "v"))
    if bounded:
        parts.append(segment(x.at(one.low), middle, x.at(one.high), middle, "s0 w"))
    place = f'cx="{number(x.at(one.estimate))}" cy="{number(middle)}"'
    parts.append(f'<circle class="s0 p" {place} r="4">{tooltip(f"{one.estimate:+.3g}")}</circle>')
    return parts
