"""How variants look in the figures of a report: color, dashes and marker agree over all."""

from collections.abc import Sequence
from dataclasses import dataclass

PAPER, INK, SOFT, RULE, REST = "#ffffff", "#1f2328", "#57606a", "#d0d7de", "#a8b0b8"

# Okabe and Ito (2008) without yellow, which vanishes on paper; ink stands for their black.
COLORS = (INK, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("", "5 2", "2 2", "6 2 1.5 2", "9 2.5", "3 1.5 1 1.5 1 1.5", "2 3.5")
"""Lengths of dashes and gaps (pixels); empty for a line without gaps."""
MARKERS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3-3h6v6h-6z",
    "M0-4l3.8 7h-7.6z",
    "M0-4.2l4.2 4.2-4.2 4.2-4.2-4.2z",
    "M0 4l3.8-7h-7.6z",
    "M-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "M-3.5-3.5l7 7m0-7l-7 7",
)
"""Outlines around the point that they mark: disk, square, triangle, diamond and so on."""
MOST_LINES = len(COLORS)


@dataclass(frozen=True)
class LineStyle:
    """Three channels that tell one line from another, so that color is never the only one."""

    number: int
    """Place in `COLORS`, `DASHES` and `MARKERS`."""

    @property
    def css(self) -> str:
        """Class that the style sheet of figures knows."""
        return f"s{self.number}"

    @property
    def marker(self) -> str:
        """Outline of the marker, around the origin."""
        return MARKERS[self.number]


def looks(names: Sequence[str]) -> dict[str, LineStyle]:
    """Give the first names a style each; the rest of a report is drawn in one gray."""
    return {name: LineStyle(at) for at, name in enumerate(names[:MOST_LINES])}


def _line_rules() -> str:
    return "".join(
        f".s{at}{{color:{color}}}" + (f".s{at} .l{{stroke-dasharray:{dash}}}" if dash else "")
        for at, (color, dash) in enumerate(zip(COLORS, DASHES, strict=True))
    )


STYLE_SHEET = (
    "text{font:11px system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif;"
    f"fill:{INK};stroke:{PAPER};stroke-width:3;stroke-linejoin:round;paint-order:stroke}}"
    f".h{{font-weight:600}}.t{{font-size:10px;fill:{SOFT}}}.e{{text-anchor:end}}"
    ".n{font-size:10px}.m{text-anchor:middle}.k{fill:transparent;stroke:none}"
    f".g{{stroke:{RULE};stroke-width:.7}}.a{{stroke:{INK};stroke-width:.9;fill:none}}"
    f".v{{stroke:{REST};stroke-dasharray:1 3}}"
    ".l{fill:none;stroke:currentColor;stroke-width:1.7;stroke-linejoin:round}"
    ".b{fill:currentColor;opacity:.14}.p{fill:currentColor;stroke:currentColor}"
    f".o{{fill:{PAPER};stroke:currentColor;stroke-width:1.3}}"
    ".w{stroke:currentColor;stroke-width:1}"
    f".r{{color:{REST}}}.r .l{{stroke-width:.9}}"
    f".f{{fill:none;stroke:{INK};stroke-width:1;opacity:.55}}"
    f".d{{stroke:{SOFT};stroke-width:.6;fill:none}}"
    ".i{stroke:currentColor;stroke-width:.6;opacity:.6}" + _line_rules()
)
"""One sheet for all drawings: a page has it once, a file of its own inside.

Classes: `h` title, `t` small text, `n` name of a curve, `e` and `m` end and middle, `g` grid,
`a` axis, `v` level, `l` curve, `b` band, `p` and `o` full and hollow marker, `k` room around a
marker to hover over, `w` whisker, `r` unnamed rest, `f` Pareto front, `d` and `i` line from a
label to its point, `s0` and on the line styles.
"""
