"""Tables that fit the terminal: long fields go on in the next line; what is piped stays whole."""

import shutil
import sys
from collections.abc import Sequence

from tabulate import tabulate

GAP, LEAST, HEAD_ROOM = 2, 12, 2
"""Columns of the terminal: between two fields, the fewest of a field that is folded, and what
tabulate leaves beside a head."""


def terminal_width() -> int | None:
    """Columns of the terminal that reads the output; None where a file or a pipe does."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted_table(
    rows: Sequence[Sequence[str]], heads: Sequence[str], width: int | None = None
) -> str:
    """A table within a width; the first column is a name, which is never folded.

    Args:
        rows: Fields of each line.
        heads: Of the columns.
        width: Most columns of the terminal that a line has; None for all that it needs.
    """
    least = [max(LEAST, len(head) + HEAD_ROOM) for head in heads]
    sizes = [
        max(len(head) + HEAD_ROOM, *map(len, column))
        for head, *column in zip(heads, *rows, strict=True)
    ]
    fixed = [None, *_folded(sizes, least, width)[1:]] if width else None
    return tabulate(rows, heads, tablefmt="simple", maxcolwidths=fixed)


def _folded(sizes: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Sizes of columns that fit: the widest one that may be narrower loses one, again and again."""
    found = list(sizes)
    while sum(found) + GAP * (len(found) - 1) > width:
        wider = [at for at in range(1, len(found)) if found[at] > least[at]]
        if not wider:
            break
        found[max(wider, key=lambda at: found[at])] -= 1
    return found
