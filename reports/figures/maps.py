"""Attention maps beside the gold alignment, drawn as figure 3 of Bahdanau et al. (2015)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from reports.blocks import Figure, clean
from reports.figures.gray import gray_image
from reports.figures.svg import cut, figure, named_places, number, panel, width_of, words

COLUMNS = 4
MOST_TOKENS = 40
MOST_LINES = 4
"""Lines of a title."""
ROOM, SIDE = 250.0, 8.0
"""Width that each map of a line adds to it, and what is free at the right of a map (pixels)."""
ROW, LEAST = 12.5, 40.0
"""Height of a row of weights, and what the smallest map has besides (pixels)."""
WORD, WORD_LINE, MOST_WORD = 10.0, 9.0, 84.0
"""Size of words, how close two may stand side by side, and the widest one (pixels)."""
TITLE, TITLE_LINE = 11.0, 13.0
GAP = 5.0
"""Between a map and its words, and between words and title (pixels)."""
_GOLD_SIDE = 5.0


@dataclass(frozen=True, kw_only=True)
class Map:
    """One matrix of weights: queries in rows, source in columns."""

    title: str
    query: tuple[str, ...]
    source: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    gold: tuple[tuple[float, ...], ...] | None = None
    is_gold: bool = False


@dataclass(frozen=True)
class _Box:
    """Where the weights of a map are drawn in its line (pixels)."""

    left: float
    top: float
    width: float
    height: float


def attention_maps(key: str, said: Mapping[str, str], maps: Sequence[Map]) -> Figure:
    """Draw maps side by side; gold links are small squares on every map.

    Output words stand at the left of a line, for all of its maps that have the same.

    Args:
        key: Name of the file and prefix of the ids inside it.
        said: `title`, `description` and `caption`.
        maps: At least one.
    """
    columns = min(COLUMNS, len(maps))
    lines = [maps[first : first + columns] for first in range(0, len(maps), columns)]
    margins = [
        max(_room_left(line, at) for line in lines if at < len(line)) for at in range(columns)
    ]
    whole = ROOM * columns
    width = (whole - sum(margins)) / columns - SIDE
    height = LEAST + ROW * min(MOST_TOKENS, max(len(one.weights) for one in maps))
    parts, below = [], 0.0
    for line in lines:
        top = max(_room_above(one, width) for one in line)
        left, drawn = 0.0, []
        for at, one in enumerate(line):
            box = _Box(left + margins[at], top, width, height)
            drawn += _map(one, box, named=_is_named(line, at))
            left = box.left + box.width + SIDE
        parts.append(panel(0, below, whole, top + height + SIDE, drawn))
        below += top + height + SIDE
    return figure(key, said, parts, whole, below)


def _room_left(line: Sequence[Map], at: int) -> float:
    """For the output words of a map, where it has its own."""
    if not _is_named(line, at):
        return GAP
    return 2 * GAP + _widest(_shown(line[at].query[: len(line[at].weights)]))


def _is_named(line: Sequence[Map], at: int) -> bool:
    """Whether a map has its output words; maps that answer the same as the first have them once."""
    return at == 0 or line[at].query != line[0].query


def _room_above(one: Map, width: float) -> float:
    titled = TITLE_LINE * len(_titled(one.title, width))
    return titled + 2 * GAP + _widest(_shown(one.source[: _count(one)], width))


def _widest(shown: Mapping[int, str]) -> float:
    return max((width_of(word, WORD) for word in shown.values()), default=0.0)


def _count(one: Map) -> int:
    """How many columns are drawn."""
    return min(MOST_TOKENS, len(one.weights[0]))


def _map(one: Map, box: _Box, *, named: bool) -> list[str]:
    rows, columns = min(MOST_TOKENS, len(one.weights)), _count(one)
    across, down = box.width / max(1, columns), box.height / rows
    weights = [row[:columns] for row in one.weights[:rows]]
    frame = _rectangle(box.left, box.top, box.width, box.height)
    return [
        *_title(one, box),
        gray_image(weights, (box.left, box.top, box.width, box.height)),
        f'<path class="r w" fill="none" d="{frame}"/>',
        *_gold(one, box, across, down),
        named_places(
            (
                (box.left + (at + 0.5) * across + WORD / 3, box.top - GAP, word)
                for at, word in _shown(one.source[:columns], box.width).items()
            ),
            "n",
            turned=True,
        ),
        named_places(
            (
                (box.left - GAP, box.top + (at + 0.5) * down + WORD / 3, word)
                for at, word in (_shown(one.query[:rows]) if named else {}).items()
            ),
            "n e",
        ),
    ]


def _title(one: Map, box: _Box) -> Iterable[str]:
    lines = _titled(one.title, box.width)
    above = _room_above(one, box.width) - TITLE_LINE
    for at, line in enumerate(lines):
        yield words(box.left + box.width / 2, box.top - above + at * TITLE_LINE, line, "h m")


def _gold(one: Map, box: _Box, across: float, down: float) -> Iterable[str]:
    """A square in the middle of each cell that gold links."""
    links = [] if one.gold is None or one.is_gold else one.gold[:MOST_TOKENS]
    squares = [
        _rectangle(
            box.left + (column + 0.5) * across - _GOLD_SIDE / 2,
            box.top + (row + 0.5) * down - _GOLD_SIDE / 2,
            _GOLD_SIDE,
            _GOLD_SIDE,
        )
        for row, weights in enumerate(links)
        for column, weight in enumerate(weights[:MOST_TOKENS])
        if weight > 0
    ]
    if squares:
        yield f'<path class="s2 w" fill="none" d="{"".join(squares)}"/>'


def _rectangle(left: float, top: float, width: float, height: float) -> str:
    across, down = number(width), number(height)
    return f"M{number(left)} {number(top)}h{across}v{down}h{number(-width)}z"


def _titled(title: str, width: float) -> list[str]:
    """Lines that are no wider than a map, and not many."""
    letters = int(width / width_of("x", TITLE))
    lines = [line for part in title.splitlines() for line in wrap(clean(part), letters)]
    more = "…" if len(lines) > MOST_LINES else ""
    shown = [cut(line, width, TITLE) for line in lines[:MOST_LINES]]
    return [*shown[:-1], cut(f"{shown[-1]}{more}", width, TITLE)] if shown else []


def _shown(tokens: Sequence[str], width: float | None = None) -> dict[int, str]:
    """Which of the first tokens are named, and how; of mere numbers of places each fifth.

    Args:
        tokens: What stands along one side of a map.
        width: Length of that side (pixels), where words might stand too close; None for rows.
    """
    tokens = tokens[:MOST_TOKENS]
    if tokens == tuple(str(at) for at in range(1, len(tokens) + 1)):
        places = [at for at in range(len(tokens)) if at == 0 or (at + 1) % 5 == 0]
    else:
        most = len(tokens) if width is None else int(width / WORD_LINE)
        places = [*range(0, len(tokens), max(1, -(-len(tokens) // max(1, most))))]
    return {at: cut(clean(tokens[at]), MOST_WORD, WORD) for at in places}
