"""Small SVG written by hand: numbers of one decimal, classes instead of repeated styles."""

import html
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from unicodedata import east_asian_width

from reports.blocks import Figure, clean, one_line
from reports.figures.style import PAPER, STYLE_SHEET

_NARROW, _WIDE = frozenset("ijltfrI1.,:;'|![]() "), frozenset("mwMWQOGCDHN@%—")


def number(value: float) -> str:
    """A coordinate in tenths of a pixel, without what says nothing.

    >>> number(12.04), number(0.26), number(-3.0)
    ('12', '.3', '-3')
    """
    text = f"{value:.1f}".removesuffix(".0")
    text = text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
    return "0" if text in ("", "-0", "-") else text


def shown(text: object) -> str:
    """Foreign text as SVG may hold it."""
    return html.escape(clean(text), quote=True)


def words(x: float, y: float, text: str, css: str = "", *, turned: bool = False) -> str:
    """One line of text; `turned` reads from bottom to top."""
    if not text:
        return ""
    around = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
    kind = f' class="{css}"' if css else ""
    return f'<text x="{number(x)}" y="{number(y)}"{kind}{around}>{shown(text)}</text>'


def named_places(
    places: Iterable[tuple[float, float, str]], css: str = "", *, turned: bool = False
) -> str:
    """Words at places of their own, in one element; `turned` reads from bottom to top.

    A word takes half of the bytes that one of `words` does.
    """
    parts = "".join(
        f'<tspan x="{number(-y if turned else x)}" y="{number(x if turned else y)}">'
        f"{shown(word)}</tspan>"
        for x, y, word in places
        if word
    )
    around = ' transform="rotate(-90)"' if turned else ""
    kind = f' class="{css}"' if css else ""
    return f"<text{kind}{around}>{parts}</text>" if parts else ""


def tooltip(text: str) -> str:
    """What a browser shows on hovering and a screen reader says."""
    return f"<title>{shown(text)}</title>"


def segment(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """A straight line."""
    return f'<path class="{css}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def track(points: Iterable[tuple[float, float]], *, stairs: bool = False) -> str:
    """Path data through points, as short relative moves between rounded places.

    >>> track([(0, 0), (10, 5.04), (20, 5)])
    'M0 0l10 5 10 0'
    """
    places = [(round(x, 1), round(y, 1)) for x, y in points]
    if stairs:
        corners = [step for a, b in pairwise(places) for step in (a, (b[0], a[1]))]
        places = [*corners, places[-1]]
    moves = [f"{number(b[0] - a[0])} {number(b[1] - a[1])}" for a, b in pairwise(places)]
    start = f"M{number(places[0][0])} {number(places[0][1])}"
    return f"{start}l{' '.join(moves)}" if moves else start


def width_of(text: str, size: float = 11.0) -> float:
    """Width of a line in a usual sans-serif font (pixels), rather too wide than too small."""
    return size * sum(map(_width, text))


@cache
def _width(letter: str) -> float:
    if letter in _NARROW:
        return 0.36
    if letter in _WIDE or east_asian_width(letter) in "WF":
        return 1.0
    return 0.63


def cut(text: str, width: float, size: float = 11.0) -> str:
    """Text that is no wider than a place for it (pixels), with an ellipsis where it was cut."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


def figure(
    key: str, said: Mapping[str, str], parts: Sequence[str], width: float, height: float
) -> Figure:
    """Join drawn parts into one file.

    Args:
        key: Name of the file and prefix of the ids inside it.
        said: `title`, `description` and `caption`.
        parts: One `<svg>` a panel, see `panel`; a page takes them out of the whole and wraps them.
        width: Of the whole (pixels).
        height: Of the whole (pixels).

    """
    title, description = one_line(said["title"]), one_line(said["description"])
    size = f'viewBox="0 0 {number(width)} {number(height)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{number(width)}" '
        f'height="{number(height)}" {size} role="img" aria-labelledby="{key}-title {key}-desc">'
        f'<title id="{key}-title">{shown(title)}</title>'
        f'<desc id="{key}-desc">{shown(description)}</desc>'
        f'<style>{STYLE_SHEET}</style><rect width="100%" height="100%" fill="{PAPER}"/>'
    )
    return Figure(
        key=key,
        title=title,
        description=description,
        caption=clean(said["caption"]),
        svg="\n".join((head, *parts, "</svg>")) + "\n",
    )


def panel(x: float, y: float, width: float, height: float, content: Iterable[str]) -> str:
    """One part of a figure with coordinates of its own."""
    return (
        f'<svg class="panel" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}">'
        f"{''.join(content)}</svg>"
    )
