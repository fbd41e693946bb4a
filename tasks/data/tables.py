"""Rows with named fields: tables and JSON lines of the directory, read as strictly as text."""

import json
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.api.errors import DataDamaged
from bench.api.plain_text import shortened
from tasks.data.corpus import Origin, origin_note
from tasks.data.files import TextFile, read_text
from tasks.data.hub_copies import HubCopy, is_of, of_another_type, read_copy
from tasks.data.hub_sets import FETCHABLE
from tasks.data.paths import not_here, place_of

Row = Mapping[str, Any]
Rows = tuple[Row, ...]

_REMEDY = "copy the file again from its source"


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set as rows in parts, with the same fields wherever it came from."""

    name: str
    parts: Mapping[str, Rows]
    """Part -> rows: `train`, `validation`, `test` and whatever else there is."""
    origin: Origin
    files: Mapping[str, str]
    """File name -> SHA-256 of the bytes that were read."""
    revision: str = ""
    """Commit of the source, where it is known."""
    differs: str = ""
    """How the rows differ from those of the data directory, where they came from the hub."""

    @property
    def note(self) -> str:
        """Where the rows came from, for a report."""
        note = origin_note(self.name, self.origin, self.files, self.revision)
        return f"{note}; compared with the data directory: {self.differs}" if self.differs else note


def as_fetched(copy: HubCopy) -> Mapping[str, Rows]:
    """The rows of a hub copy whose fields and values are those of the data directory already."""
    return copy.splits


def load_table(
    name: str,
    read: Callable[[Path], tuple[Mapping[str, Rows], Sequence[TextFile]]],
    data_dir: Path | None = None,
    *,
    from_hub: Callable[[HubCopy], Mapping[str, Rows]] = as_fetched,
    splits: Collection[str] = (),
    needs: str = "",
    cache_dir: Path | None = None,
) -> DataSet:
    """Load a data set from the directory, or else from the fetched hub copy; nothing is downloaded.

    Args:
        name: Of the data set: of the folder in the directory, and for `bench data fetch`.
        read: Reads the folder of the directory: parts, and the files that were read.
        data_dir: The directory, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.
        from_hub: Turns a fetched copy into the parts that the data directory would have.
        splits: Of the copy, those that are read; all where none is named.
        needs: File without which the folder of the data directory does not count.
        cache_dir: Replaces the cache folder.

    Raises:
        DataUnavailable: It is not on this machine; the message says how to get it.
        DataDamaged: A file is there and is not whole.
    """
    place = place_of(name, data_dir, needs=needs, cache_dir=cache_dir)
    if place is not None and place.origin == "directory":
        parts, files = read(place.path)
        hashes = {file.path.name: file.sha256 for file in files}
        return DataSet(name=name, parts=parts, origin="directory", files=hashes)
    copy = read_copy(name, cache_dir, splits=splits) if place is not None else None
    if copy is None:
        raise not_here(name, data_dir, needs=needs, cache_dir=cache_dir)
    return DataSet(
        name=name,
        parts=from_hub(copy),
        origin="hub",
        files=copy.files,
        revision=copy.revision,
        differs=FETCHABLE[name].differs,
    )


def read_table(
    path: Path, fields: Sequence[str], *, separator: str = "\t", header: bool = False
) -> tuple[Rows, TextFile]:
    """Read lines of fields, none of them quoted.

    Args:
        path: The file, gzipped if its name ends in `.gz`.
        fields: Names of the fields, in their order.
        separator: What separates fields.
        header: Whether the first line names the fields, which must then be these.

    Raises:
        DataUnavailable: There is no such file.
        DataDamaged: The file is damaged, or a line has another number of fields.
    """
    file = read_text(path)
    lines = list(enumerate(file.lines, start=1))
    if header:
        _, first = lines.pop(0)
        if first.split(separator) != list(fields):
            raise DataDamaged(
                f"{path}: line 1 names {shortened(repr(first.split(separator)), 200)}, not "
                f"{list(fields)}; {_REMEDY}."
            )
    rows = []
    for number, line in lines:
        found = line.split(separator)
        if len(found) != len(fields):
            raise DataDamaged(
                f"{path}: line {number} has {len(found)} fields where {len(fields)} are expected; "
                f"{_REMEDY}."
            )
        rows.append(dict(zip(fields, found, strict=True)))
    return tuple(rows), file


def read_json_lines(
    path: Path, fields: Mapping[str, type], *, may_lack: Collection[str] = ()
) -> tuple[Rows, TextFile]:
    """Read one JSON object a line, with at least these fields.

    Args:
        path: The file, gzipped if its name ends in `.gz`.
        fields: Name of a field -> type of its values; a whole number is a `float`, too.
        may_lack: Fields that a line may lack.

    Raises:
        DataUnavailable: There is no such file.
        DataDamaged: The file is damaged, or a line is no object with these fields.
    """
    file = read_text(path)
    rows = []
    for number, line in enumerate(file.lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataDamaged(f"{path}: line {number} is not JSON ({error}); {_REMEDY}.") from error
        wrong = _wrong(row, fields, may_lack)
        if wrong:
            raise DataDamaged(f"{path}: line {number} has {wrong}; {_REMEDY}.")
        rows.append(row)
    return tuple(rows), file


def _wrong(row: object, fields: Mapping[str, type], may_lack: Collection[str]) -> str:
    """How a line differs from an object with these fields; empty where it does not."""
    for name, kind in fields.items():
        if not isinstance(row, dict) or name not in row:
            if name not in may_lack:
                return f"no field {name!r}"
        elif not is_of(row[name], kind):
            return of_another_type(name, row[name], kind)
    return ""


def numbered(
    rows: Rows,
    field: str,
    values: Mapping[Any, int],
    path: Path,
    *,
    first: int = 1,
    remedy: str = _REMEDY,
) -> Rows:
    """Turn the value of a field into its number.

    Args:
        rows: Of one file, a line each.
        field: The field.
        values: Allowed value -> its number.
        path: The file, for the message.
        first: Line of the first row.
        remedy: What to do about other values, for the message.

    Raises:
        DataDamaged: A line has another value.
    """
    found = []
    for number, row in enumerate(rows, start=first):
        if not isinstance(row[field], str | int) or row[field] not in values:
            raise DataDamaged(
                f"{path}: line {number} has {field} {shortened(repr(row[field]), 200)}, none of "
                f"{list(values)}; {remedy}."
            )
        found.append({**row, field: values[row[field]]})
    return tuple(found)


def held_out(rows: Rows, every: int) -> tuple[Rows, Rows]:
    """Divide rows into those to train on and one of `every`, by a draw that never changes.

    Rows at a fixed distance could all have one label, where a file has labels in turn.
    """
    chosen = set(random.Random(0).sample(range(len(rows)), len(rows) // every))
    train = tuple(row for at, row in enumerate(rows) if at not in chosen)
    return train, tuple(row for at, row in enumerate(rows) if at in chosen)
