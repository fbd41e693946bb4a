"""Attention maps beside the gold alignment, drawn as figure 3 of Bahdanau et al. (2015)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.blocks import Figure, clean
from reports.style import REST, draw

COLUMNS = 4
MOST_TOKENS = 40
MOST_LETTERS = 14
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
    """Draw maps side by side; gold links are small squares on every map."""
    columns = min(COLUMNS, len(maps))
    rows = -(-len(maps) // columns)
    height = 0.5 + rows * (1.1 + 0.13 * min(MOST_TOKENS, max(len(one.query) for one in maps)))

    def paint(figure: Any) -> None:
        grid = figure.subplots(rows, columns, squeeze=False)
        for at, axes in enumerate(grid.flat):
            if at < len(maps):
                _map(axes, maps[at])
            else:
                axes.set_axis_off()

    return draw(key, words, paint, size=(2.45 * columns, height))


def _map(axes: Any, one: Map) -> None:
    shown = [row[:MOST_TOKENS] for row in one.weights[:MOST_TOKENS]]
    axes.grid(visible=False)
    axes.imshow(
        shown, cmap="gray", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest", zorder=1
    )
    axes.set_title(clean(one.title), loc="center", fontsize=8.5)
    axes.xaxis.set_ticks_position("top")
    source, query = one.source[:MOST_TOKENS], one.query[:MOST_TOKENS]
    axes.set_xticks(range(len(source)), labels=[_short(token) for token in source], rotation=90)
    axes.set_yticks(range(len(query)), labels=[_short(token) for token in query])
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


def _short(token: str) -> str:
    token = clean(token)
    return token if len(token) <= MOST_LETTERS else f"{token[: MOST_LETTERS - 1]}…"
