"""The result of a run as text for a terminal: its sentence and its choice table."""

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

from reports.blocks import TableBlock, TableCell, clean
from reports.choices import choices_table
from reports.folder import RunFolder
from reports.ranked_table.terminal import as_text
from reports.result_sentence import headline

LEAST_WIDTH = 60
"""A narrower terminal gets lines instead of columns."""
SHARES = (0.24, 0.22, 0.38, 0.16)
"""Of the width: need, variant, evidence and cost."""
MOST_TABLES = 3
"""Ranked tables that are printed; of more the report has them."""
GAP = "  "


def result_text(folder: RunFolder, width: int = 80) -> str:
    """What a run ends with: ranked tables of a small run, the sentence, and the choice table.

    Args:
        folder: The run.
        width: Of the terminal (columns); the sentence and the choice table stay within it.
    """
    table = choices_table(folder)
    parts = []
    if table is None or len(folder.comparisons) <= MOST_TABLES:
        parts.append(as_text(folder.ranked_lines, ranks=folder.catalog.ranks))
    if table is not None:
        parts += ["\n".join(wrap(headline(folder), width)), choices_text(table, width)]
    return "\n\n".join(parts)


def choices_text(table: TableBlock, width: int) -> str:
    """A choice table within a width; long fields continue on the next line."""
    rows = [[_text(cell) for cell in row] for row in table.rows]
    heads = [column.title for column in table.columns]
    if width < LEAST_WIDTH:
        return "\n".join(_stacked(row, width) for row in rows)
    free = width - len(GAP) * (len(heads) - 1)
    sizes = [int(share * free) for share in SHARES]
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
