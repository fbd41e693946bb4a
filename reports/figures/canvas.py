"""Stable SVG from matplotlib, for drawings of pixels: pictures, sounds and shaded words."""

import html
import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from reports.blocks import Figure, clean, one_line
from reports.figures.style import INK, PAPER, RULE

_TAG = re.compile(r"<[^>]+>")
_ID = re.compile(r' id="([^"]+)"')
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_EMPTY = re.compile(r"<g(?: id=\"[^\"]*\")?(?:/>|>\s*</g>)")
_DRAWN = re.compile(r'(<path[^>]*? d="|transform=")([^"]*)')

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attention-bench",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}


def draw(
    key: str,
    words: Mapping[str, str],
    paint: Callable[[Any], None],
    *,
    size: tuple[float, float],
) -> Figure:
    """Run `paint` on a fresh matplotlib figure and keep it as SVG.

    Args:
        key: Name of the file and prefix of every id inside it.
        words: `title`, `description` and `caption`.
        paint: Draws on the figure that it gets.
        size: Width and height (inches).

    """
    # half a second that most reports do not need
    import matplotlib as mpl  # noqa: PLC0415  many reports have no picture
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415  many reports have no picture
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415  many reports have no picture

    buffer = io.StringIO()
    # Fonts lack glyphs of some scripts; the reader's browser has them, since text stays text.
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Canvas(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    title, description = one_line(words["title"]), one_line(words["description"])
    svg = _finish(buffer.getvalue(), key, title, description)
    return Figure(
        key=key,
        title=title,
        description=description,
        caption=clean(words["caption"]),
        svg=svg,
    )


def _finish(svg: str, key: str, title: str, description: str) -> str:
    """Drop the prolog, make ids unique in the page, and add the words."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = _TAG.sub(lambda tag: _prefixed(tag.group(), key), _slim(svg))
    head, rest = svg.split(">", 1)
    names = f'role="img" aria-labelledby="{key}-title {key}-desc"'
    words = (
        f'<title id="{key}-title">{html.escape(title)}</title>'
        f'<desc id="{key}-desc">{html.escape(description)}</desc>'
    )
    return "\n".join(line.rstrip() for line in f"{head} {names}>{words}{rest}".splitlines()) + "\n"


def _slim(svg: str) -> str:
    """Without ids that nothing points at, groups of nothing, and digits below 1/100 of a point."""
    used = {*re.findall(r"url\(#([^)]+)\)", svg), *re.findall(r'href="#([^"]+)"', svg)}
    svg = _TAG.sub(lambda tag: _short(tag.group(), used), svg)
    smaller = _EMPTY.sub("", svg)
    while smaller != svg:
        svg, smaller = smaller, _EMPTY.sub("", smaller)
    return re.sub(r"\n\s*(?=\n)|(?<=\n) +", "", svg)


def _short(tag: str, used: set[str]) -> str:
    tag = _ID.sub(lambda found: found.group() if found.group(1) in used else "", tag)
    return _DRAWN.sub(lambda found: found.group(1) + _rounded(found.group(2)), tag)


def _rounded(drawn: str) -> str:
    """Coordinates with two decimals; factors of a scale keep theirs."""
    if "scale" in drawn or "matrix" in drawn:
        return drawn
    shorter = _NUMBER.sub(lambda found: f"{float(found.group()):.2f}", drawn)
    return re.sub(r"\s*\n\s*", " ", shorter).strip()


def _prefixed(tag: str, key: str) -> str:
    tag = re.sub(r'\bid="', f'id="{key}-', tag)
    return tag.replace("url(#", f"url(#{key}-").replace('href="#', f'href="#{key}-')
