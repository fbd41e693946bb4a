"""What code of others leaves of a cell, as plain data that every file can hold.

A value that JSON cannot hold, or half of a surrogate pair in a text, would otherwise end the run
where the cell is stored, and again at every resume.
"""

import json
import math
from collections.abc import Iterable

from bench.api.plain_text import storable
from results.json_values import Json
from results.row import Row


def plain_json(value: object) -> Json:
    """A copy of plain data, with every text as UTF-8 can hold it.

    Raises:
        ValueError: It holds something else, or a number that is not finite.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"what it leaves is no plain data ({error})") from error
    found: Json = json.loads(storable(text))
    return found


def plain_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Copies of rows, of plain numbers and texts.

    Raises:
        ValueError: A position is not finite.
        TypeError: A value is no number.
    """
    return tuple(_plain_row(row) for row in rows)


def _plain_row(row: Row) -> Row:
    if row.x is not None and not math.isfinite(row.x):
        raise ValueError(f"row {row.metric}: x must be finite, got {row.x}")
    return Row(
        metric=storable(str(row.metric)),
        value=float(row.value),
        repeat=int(row.repeat),
        axis=storable(str(row.axis)),
        x=None if row.x is None else float(row.x),
        split=storable(str(row.split)),
        baseline=storable(str(row.baseline)),
    )
