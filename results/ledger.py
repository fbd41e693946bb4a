"""The ledger: append-only files of JSON lines, one writer per file, one line per finished cell."""

import errno
import json
import os
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.api.errors import BenchError
from bench.api.plain_text import shortened
from bench.api.whole_file import sync_folder
from results.json_values import why_unreadable
from results.row import RECORD_SCHEMA, Record, record_from_json

MOST_QUOTED = 200
"""Characters of an error about a damaged line; it may quote the line."""


class OtherSchema(BenchError):
    """A ledger line written by a version of the bench with other rows."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Everything that could be read from the files of one ledger."""

    records: tuple[Record, ...]
    """Every complete line in file and line order, older attempts included."""
    torn_tails: int = 0
    """Last lines without a newline: their writer was killed and never acknowledged them."""
    corrupt_lines: tuple[str, ...] = ()
    """`file:line: reason` of each complete line that cannot be read; these cells run again."""

    def newest(self) -> dict[str, Record]:
        """Of each cell: the highest attempt, then the latest finish, then the last line."""
        return _greatest(self.records, age)


def newest_of_runs(records: Iterable[Record]) -> dict[str, Record]:
    """Of each cell the record that counts, where several runs have one.

    Each run counts its own attempts, so the latest finish wins. Outdated values count only where
    there are no others. What only its machine refused takes the place of nothing.
    """
    return _greatest(records, age_among_runs)


def age(record: Record) -> tuple[int, str]:
    """Sort key by which a later record of one cell wins; ISO 8601 UTC times sort as text."""
    return record.attempt, record.finished


def age_among_runs(record: Record) -> tuple[bool, bool, str, int]:
    """The same sort key among records of several runs.

    A machine without the data, or with a full disk, says nothing of a cell that another one has.
    """
    of_today = record.status != "other_code"
    return not record.environmental, of_today, record.finished, record.attempt


def _greatest(
    records: Iterable[Record], key: Callable[[Record], tuple[Any, ...]]
) -> dict[str, Record]:
    best: dict[str, Record] = {}
    for record in records:
        held = best.get(record.id)
        if held is None or key(record) >= key(held):
            best[record.id] = record
    return best


class LedgerWriter:
    """Appends records to a file of its own; an `append` that returned survives a kill.

    Threads of one process may share a writer, and a forked process opens its own file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = os.getpid()
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    def append(self, record: Record) -> None:
        """Write one line and wait until the disk has it."""
        line = json.dumps(record.to_json(), separators=(",", ":"), allow_nan=False) + "\n"
        self._leave_parent()
        with self._lock:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            try:
                _write_whole(descriptor, line.encode(), self._folder)
            except OSError:
                # A torn line must stay the last of its file, so the next append opens another.
                self._forget()
                raise

    def close(self) -> None:
        """Close the file; a later append opens a new one."""
        self._leave_parent()
        with self._lock:
            self._forget()

    def _leave_parent(self) -> None:
        if self._process == os.getpid():
            return
        # Another thread of the parent may hold the inherited lock for ever: take a fresh one.
        self._process, self._lock = os.getpid(), threading.Lock()
        self._forget()

    def _open(self) -> int:
        host = re.sub(r"[^A-Za-z0-9.]+", "_", socket.gethostname()) or "host"
        name = f"{host}-{self._process}-{uuid.uuid4().hex[:12]}.jsonl"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        self._descriptor = os.open(self._folder / name, flags, 0o644)
        sync_folder(self._folder)
        return self._descriptor

    def _forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _write_whole(descriptor: int, line: bytes, folder: Path) -> None:
    # One call, so that a kill falls before or after the line and not inside it.
    written = os.write(descriptor, line)
    if written != len(line):
        raise OSError(
            errno.ENOSPC,
            f"wrote {written} of {len(line)} bytes of a ledger line; is the disk full?",
            str(folder),
        )
    os.fsync(descriptor)
    if os.fstat(descriptor).st_nlink == 0:
        raise FileNotFoundError(
            errno.ENOENT, "the ledger file was deleted, and with it what it held", str(folder)
        )


@dataclass
class _Progress:
    """What was read of one file so far."""

    offset: int = 0
    lines: int = 0
    torn: bool = False
    records: list[Record] = field(default_factory=list)
    corrupt: list[str] = field(default_factory=list)
    compared: int = 0
    """How many of the records have been compared with others of their cells."""


Standing = tuple[tuple[int, str], Path, int]
"""What decides between records of one cell: age, then the place in the ledger."""


class LedgerReader:
    """Reads every file of a ledger; reading again parses only what was appended since."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, _Progress] = {}
        self._newest: dict[str, tuple[Standing, Record]] = {}

    def read(self) -> Ledger:
        """Read what is on disk now.

        Raises:
            OtherSchema: A line was written by a version of the bench with other rows.
        """
        self._go_on()
        files = [self._files[path] for path in sorted(self._files)]
        return Ledger(
            records=tuple(record for progress in files for record in progress.records),
            torn_tails=sum(progress.torn for progress in files),
            corrupt_lines=tuple(place for progress in files for place in progress.corrupt),
        )

    def newest_of(self, cell_id: str) -> Record | None:
        """The record of a cell that counts now, as `Ledger.newest` picks it; None without one.

        However long the ledger is, this looks only at what was appended since it was last asked.

        Raises:
            OtherSchema: A line was written by a version of the bench with other rows.
        """
        self._go_on()
        for path, progress in self._files.items():
            for number in range(progress.compared, len(progress.records)):
                record = progress.records[number]
                standing = age(record), path, number
                held = self._newest.get(record.id)
                if held is None or standing > held[0]:
                    self._newest[record.id] = standing, record
            progress.compared = len(progress.records)
        found = self._newest.get(cell_id)
        return None if found is None else found[1]

    def _go_on(self) -> None:
        """Read what was appended; what stood in a file that has gone counts no more."""
        paths = {*self._folder.glob("*.jsonl")}
        if not self._files.keys() <= paths:
            self._files.clear()
            self._newest.clear()
        for path in paths:
            _read_on(path, self._files.setdefault(path, _Progress()))


def _read_on(path: Path, progress: _Progress) -> None:
    with path.open("rb") as file:
        file.seek(progress.offset)
        *lines, tail = file.read().split(b"\n")
    progress.torn = bool(tail)
    for line in lines:
        place = f"{path}:{progress.lines + 1}"
        try:
            progress.records.append(_parse(line, place))
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            why = why_unreadable(error, one_line=True)
            progress.corrupt.append(f"{place}: {shortened(why, MOST_QUOTED)}")
        progress.lines += 1
        progress.offset += len(line) + 1


def _parse(line: bytes, place: str) -> Record:
    data = json.loads(line)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    schema = data.get("schema", RECORD_SCHEMA)
    if not isinstance(schema, int):
        raise TypeError("schema is no whole number")
    if schema != RECORD_SCHEMA:
        advice = "update attention-bench" if schema > RECORD_SCHEMA else "run into a new folder"
        raise OtherSchema(
            f"{place}: written with record schema {schema}, this bench reads "
            f"{RECORD_SCHEMA}; {advice}."
        )
    return record_from_json(data)
