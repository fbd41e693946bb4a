"""Scores on inputs longer than any of training, for variants that differ in their positions."""

import math
from collections.abc import Sequence
from dataclasses import replace

from bench.api.headline import made_of
from reports.blocks import Block, Section
from reports.curves import about_bands, curve_panel
from reports.figures import Legend, Panel, panels
from reports.figures.style import MOST_LINES, looks
from reports.folder import RunFolder
from reports.positions import has_positions
from reports.ranked_table.comparison import Comparison

AXIS = "length"
LEAST_VARIANTS = 3
"""With positions of their own, of a comparison that has a figure."""


TITLE = "Positions beyond the length of training"


def longer_inputs_section(folder: RunFolder) -> Section | None:
    """Accuracy against length of variants that differ in their positions; None where none do."""
    blocks: list[Block] = []
    for comparison, panel in _drawn(folder):
        blocks += _figures(comparison, panel, "longer", len(blocks) + 1)
    return Section(key="longer", title=TITLE, blocks=(*blocks,)) if blocks else None


def fullest_longer_inputs_section(folder: RunFolder) -> Section | None:
    """The figures of the comparison with most variants, for the summary; None without one."""
    drawn = _drawn(folder)
    if not drawn:
        return None
    comparison, panel = max(drawn, key=lambda one: len(one[1].lines))
    blocks = _figures(comparison, panel, "longer-most", 1)
    return Section(key="longer-most", title=TITLE, blocks=(*blocks,), group="summary")


def _drawn(folder: RunFolder) -> list[tuple[Comparison, Panel]]:
    found = ((comparison, _panel(comparison)) for comparison in folder.comparisons)
    return [(comparison, panel) for comparison, panel in found if panel is not None]


def _panel(comparison: Comparison) -> Panel | None:
    known = comparison.catalog
    trained_to = known.task(comparison.task).trained_to
    chance = known.level(comparison.task, "chance")
    metric = made_of(comparison.metric)
    metrics = comparison.stored.divided().get(AXIS, [])
    if trained_to is None or metric not in metrics:
        return None
    panel = curve_panel(comparison, AXIS, "length (tokens)", "test", metric)
    shown = tuple(
        line
        for line in panel.lines
        if line.name not in comparison.red
        and (line.name == known.baseline or has_positions(known, line.name))
        and max(line.x) > trained_to
    )
    if sum(line.name != known.baseline for line in shown) < LEAST_VARIANTS:
        return None
    return Panel(
        title=panel.title,
        x_label=panel.x_label,
        y_label=panel.y_label,
        limits=panel.limits,
        lines=shown,
        levels=() if chance is None else ((chance, "chance"),),
        borders=((trained_to, "trained to here"),),
        ticks=tuple(sorted({x for line in shown for x in line.x})),
    )


def _figures(comparison: Comparison, panel: Panel, key: str, first: int) -> list[Block]:
    """Drawings of about as many variants each, those that are best on the longest first.

    None has more variants than there are looks.
    """
    sign = -1.0 if comparison.better == "lower" else 1.0
    names = [one.name for one in sorted(panel.lines, key=lambda one: -sign * one.y[-1])]
    labels = comparison.catalog.labels(names)
    parts = math.ceil(len(names) / MOST_LINES)
    size = math.ceil(len(names) / parts)
    groups = [names[at : at + size] for at in range(0, len(names), size)]
    blocks: list[Block] = []
    for at, group in enumerate(groups):
        content, legend = [_part(panel, group)], Legend(looks(group), labels)
        words = _words(panel, at, groups, about_bands(content, legend))
        blocks.append(panels(f"{key}-{first + at}", words, content, legend, columns=1))
    return blocks


def _part(panel: Panel, names: Sequence[str]) -> Panel:
    return replace(panel, lines=tuple(one for one in panel.lines if one.name in names), whole=panel)


def _words(panel: Panel, at: int, groups: Sequence[Sequence[str]], bands: str) -> dict[str, str]:
    part = f", part {at + 1} of {len(groups)}" if len(groups) > 1 else ""
    best = "the best" if at == 0 else "the next"
    few = (
        f" This part has {best} {len(groups[at])} of {len(panel.lines)} on the longest inputs."
        if len(groups) > 1
        else ""
    )
    return {
        "title": f"Score against length: {panel.title}{part}",
        "description": "Test score of variants that differ in their positions, at several lengths.",
        "caption": "Score of inputs of one length. The vertical line is the longest input of "
        f"training; inputs to its right are longer than any of training. {bands}{few}",
    }
