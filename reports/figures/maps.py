"""Attention maps beside the gold alignment, drawn as figure 3 of Bahdanau et al. (2015)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from reports.blocks import Figure, clean
from reports.figures.canvas import draw
from reports.figures.style import REST

COLUMNS = 4
MOST_TOKENS = 40
MOST_LETTERS = 14
WIDEST = 27
"""Letters of a title's line, and columns that can all be named."""
MOST_LINES = 4
"""Lines of a title."""
_GOLD = "#d55e00"


@dataclass(frozen=True, kw_only=True)
class Map:
    """One matrix of weights: queries in rows, source in columns."""

    title: str
    query: tuple[str, ...]
    source: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    gold: tuple[tuple[float, ...], ...] | None = None
    is_gold: bool = False


def attention_maps(key: str, words: Mapping[str, str], maps: Sequence[Map]) -> Figure:
    """Draw maps side by side; gold links are small squares on every map.

    Output words stand at the left of a line, for all of its maps that have the same.
    """
    columns = min(COLUMNS, len(maps))
    rows = -(-len(maps) // columns)
    named = max(_titled(one.title).count("\n") for one in maps)
    answered = min(MOST_TOKENS, max(len(one.query) for one in maps))
    height = 0.5 + rows * (1.1 + 0.13 * (answered + named))

    def paint(figure: Any) -> None:
        grid = figure.subplots(rows, columns, squeeze=False)
        for at, axes in enumerate(grid.flat):
            if at < len(maps):
                first = maps[at - at % columns]
                _map(axes, maps[at], rows=at % columns == 0 or maps[at].query != first.query)
            else:
                axes.set_axis_off()

    return draw(key, words, paint, size=(2.45 * columns, height))


def _map(axes: Any, one: Map, *, rows: bool) -> None:
    shown = [row[:MOST_TOKENS] for row in one.weights[:MOST_TOKENS]]
    axes.grid(visible=False)
    axes.imshow(
        shown, cmap="gray", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest", zorder=1
    )
    axes.set_title(_titled(one.title), loc="center", fontsize=8.5)
    axes.xaxis.set_ticks_position("top")
    source, query = one.source[:MOST_TOKENS], one.query[:MOST_TOKENS]
    axes.set_xticks(*_named(source, every=-(-len(source) // WIDEST)), rotation=90)
    # maps of a line that answer the same words have these words once
    axes.set_yticks(*(_named(query) if rows else ([], [])))
    axes.tick_params(length=0, labelsize=6.5, pad=2)
    for side in axes.spines.values():
        side.set(visible=True, color=REST, linewidth=0.6)
    if one.gold is not None and not one.is_gold:
        links = [
            (column, row)
            for row, weights in enumerate(one.gold[:MOST_TOKENS])
            for column, weight in enumerate(weights[:MOST_TOKENS])
            if weight > 0
        ]
        if links:
            axes.scatter(
                *zip(*links, strict=True),
                s=16,
                marker="s",
                facecolors="none",
                edgecolors=_GOLD,
                linewidths=0.9,
                zorder=3,
            )


def _titled(title: str) -> str:
    """Lines that are no wider than a map, and not many."""
    lines = [line for part in title.splitlines() for line in wrap(clean(part), WIDEST)]
    return "\n".join(lines[:MOST_LINES]) + ("…" if len(lines) > MOST_LINES else "")


def _named(tokens: Sequence[str], every: int = 1) -> tuple[list[int], list[str]]:
    """Places of an axis and what they are called; of mere numbers of places each fifth."""
    if tokens == tuple(str(at) for at in range(1, len(tokens) + 1)):
        places = [at for at in range(len(tokens)) if at == 0 or (at + 1) % 5 == 0]
    else:
        places = [*range(0, len(tokens), every)]
    return places, [_short(tokens[at]) for at in places]


def _short(token: str) -> str:
    token = clean(token)
    return token if len(token) <= MOST_LETTERS else f"{token[: MOST_LETTERS - 1]}…"
