"""The choice table of the report, for a terminal."""

from textwrap import fill

from tabulate import tabulate

from reports.blocks import TableBlock, clean
from reports.choices import choices_table, headline
from reports.folder import RunFolder

LEAST_WIDTH = 60
"""Narrower terminals get lines of this width (columns)."""
LEAST_EVIDENCE = 12
"""Width of the column that gets what the others leave (columns)."""
SPACES = 2 * 3
"""Between the four columns."""


def choice_text(folder: RunFolder, width: int) -> str:
    """The sentence of result and the table of what to choose; empty where nothing decides.

    Args:
        folder: A finished run.
        width: Of the terminal (columns).
    """
    table = choices_table(folder)
    if table is None:
        return ""
    width = max(width, LEAST_WIDTH)
    notes = (fill(clean(note), width) for note in table.notes)
    return "\n\n".join([fill(clean(headline(folder)), width), _rows(table, width), *notes])


def _rows(table: TableBlock, width: int) -> str:
    """The table; the need, long names and the evidence are wrapped."""
    heads = [column.title for column in table.columns]
    rows = [
        [clean(" ".join([cell.text, *(f"({mark})" for mark in cell.marks)])) for cell in row]
        for row in table.rows
    ]
    need, variant, _, cost = (
        max(len(text) for text in column) for column in zip(heads, *rows, strict=True)
    )
    need, variant = min(need, width // 4), min(variant, width // 4)
    evidence = max(width - need - variant - cost - SPACES, LEAST_EVIDENCE)
    return tabulate(
        rows,
        heads,
        tablefmt="simple",
        disable_numparse=True,
        maxcolwidths=[need, variant, evidence, None],
    )
