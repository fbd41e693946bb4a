"""The result of a run as text for a terminal: its sentence and its choice table."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from tabulate import tabulate

from reports.blocks import NO_VALUE, TableBlock, TableCell, clean
from reports.choices import choices_table
from reports.folder import RunFolder
from reports.numbers import counted, plain
from reports.ranked_table.rows import interval_text
from reports.ranked_table.terminal import as_text
from reports.result_sentence import headline
from reports.speed_rows import TIMED_TOGETHER, place_text

LEAST_WIDTH = 60
"""A narrower terminal gets lines instead of columns."""
SHARES = {"Use": 0.2, "Variant": 0.2, "Score": 0.22, "Compared with": 0.22, "Cost of a step": 0.16}
"""Columns of the choice table that are printed, and what they have of the width."""
MOST_TABLES = 3
"""Ranked tables, or tables of timings, that are printed; of more the report has them."""
TIMED = {"forward_time_ms": "forward ms", "decode_step_time_ms": "decode ms"}
"""Times that are printed of a run without training, with their heads."""
GAP = "  "


def result_text(folder: RunFolder, width: int = 80) -> str:
    """What a run ends with: ranked tables of a small run, the sentence, and the choice table.

    A run that only timed ends with its timings.

    Args:
        folder: The run.
        width: Of the terminal (columns); the sentence and the choice table stay within it.
    """
    if not folder.of_kind("quality") and not folder.speed_lines.empty:
        return timings_text(folder)
    table = choices_table(folder)
    parts = []
    if table is None or len(folder.comparisons) <= MOST_TABLES:
        parts.append(as_text(folder.ranked_lines, ranks=folder.catalog.ranks))
    if table is not None:
        parts += ["\n".join(wrap(headline(folder), width)), choices_text(table, width)]
    return "\n\n".join(parts)


def timings_text(folder: RunFolder) -> str:
    """Times of each variant at its longest length, the longest of the run first."""
    lines = folder.speed_lines
    timed = lines[lines["metric"].isin(TIMED)]
    places = [
        (max(group["length"]), place, group)
        for place, group in timed.groupby([*TIMED_TOGETHER], sort=True)
    ]
    places.sort(key=lambda one: -one[0])
    parts = [
        f"{clean(place_text(place, lines))}:\n{_timings(folder, group.to_dict('records'))}"
        for _, place, group in places[:MOST_TABLES]
    ]
    if len(places) > MOST_TABLES:
        parts.append(f"{counted(len(places) - MOST_TABLES, 'table')} more in the report.")
    if not folder.catalog.ranks:
        parts.append("Nothing is ranked: the preset is too small to show differences.")
    return "\n\n".join(parts)


def _timings(folder: RunFolder, lines: Sequence[dict[Any, Any]]) -> str:
    """One line for each variant, the baseline first and then the fastest."""
    found: dict[str, dict[str, dict[Any, Any]]] = {}
    for line in lines:
        found.setdefault(str(line["variant"]), {})[str(line["metric"])] = line
    metrics = [name for name in TIMED if any(name in mine for mine in found.values())]

    def order(variant: str) -> tuple[bool, float]:
        mine = found[variant].get(metrics[0])
        return variant != folder.catalog.baseline, mine["median"] if mine else math.inf

    rows = []
    for variant in sorted(found, key=order):
        mine = found[variant]
        mark = " (baseline)" if variant == folder.catalog.baseline else ""
        row = [
            f"{clean(folder.catalog.label(variant))}{mark}",
            f"{max(line['length'] for line in mine.values()):g}",
        ]
        for metric in metrics:
            row += _time(mine.get(metric), against=not mark)
        rows.append(row)
    heads = ["variant", "tokens"]
    for metric in metrics:
        heads += [TIMED[metric], "to baseline", "verdict"]
    align = ("left", "right", *["right", "right", "left"] * len(metrics))
    return tabulate(rows, heads, tablefmt="simple", disable_numparse=True, colalign=align)


def _time(line: dict[Any, Any] | None, *, against: bool) -> list[str]:
    """Median, ratio and verdict; those of the baseline against itself say nothing."""
    if line is None:
        return [NO_VALUE] * 3
    compared = [interval_text(line, "ratio"), str(line["verdict"])] if against else ["", ""]
    return [plain(line["median"]), *(text or NO_VALUE for text in compared)]


def choices_text(table: TableBlock, width: int) -> str:
    """A choice table within a width; long fields continue on the next line."""
    titles = [column.title for column in table.columns]
    places = [titles.index(title) for title in SHARES]
    rows = [[_text(row[place]) for place in places] for row in table.rows]
    heads = [*SHARES]
    if width < LEAST_WIDTH:
        return "\n".join(_stacked(row, width) for row in rows)
    free = width - len(GAP) * (len(heads) - 1)
    sizes = [int(share * free) for share in SHARES.values()]
    lines = [*_lines(heads, sizes), GAP.join("-" * size for size in sizes)]
    for row in rows:
        lines += _lines(row, sizes)
    notes = [line for note in table.notes for line in wrap(clean(note), width)]
    return "\n".join([*lines, *notes])


def _text(cell: TableCell) -> str:
    marks = f" ({', '.join(cell.marks)})" if cell.marks else ""
    return clean(f"{cell.text}{marks}")


def _stacked(row: Sequence[str], width: int) -> str:
    need, variant, *rest = row
    indented = [line for text in rest for line in wrap(text, max(width - 2, 10))]
    return "\n".join(
        [*wrap(f"{need}: {variant}", max(width, 10)), *(f"  {one}" for one in indented)]
    )


def _lines(row: Sequence[str], sizes: Sequence[int]) -> list[str]:
    columns = [wrap(text, size) or [""] for text, size in zip(row, sizes, strict=True)]
    return [
        GAP.join(text.ljust(size) for text, size in zip(line, sizes, strict=True)).rstrip()
        for line in zip_longest(*columns, fillvalue="")
    ]
