"""Copies of fetched data sets in the cache: JSON lines with hashes, and where they come from.

A copy holds rows as the hub has them. `tasks/data/<name>.py` turns them into the rows of the data
directory.
"""

import base64
import hashlib
import json
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.api.cache import cache_folder
from bench.api.errors import DataDamaged
from tasks.data.hub_sets import HubDataset, fetch_command, find_data_set

Row = Mapping[str, object]
"""A row of the hub: field -> value, not checked yet."""
UNPINNED = "(unpinned)"
REPORT_IT = "report it to the data set's page and use a data directory (--data-dir)"
"""What to do about rows of the hub that are not as expected; fetching again brings the same."""


@dataclass(frozen=True, kw_only=True)
class HubCopy:
    """A fetched data set as it lies in the cache."""

    folder: Path
    revision: str
    """Commit that was fetched; it ends in `(unpinned)` where another may be fetched tomorrow."""
    files: Mapping[str, str]
    """File name -> SHA-256."""
    contents: Mapping[str, bytes] = field(repr=False)
    """Split -> its JSON lines."""

    @cached_property
    def splits(self) -> Mapping[str, tuple[dict[str, Any], ...]]:
        """Split -> rows; read at the first use."""
        return {
            split: tuple(json.loads(line) for line in content.decode().split("\n")[:-1])
            for split, content in self.contents.items()
        }

    def path(self, split: str) -> Path:
        """File of a split; its lines are the rows."""
        return self.folder / f"{split}.jsonl"


def copy_folder(name: str, cache_dir: Path | None = None) -> Path:
    """Return where the copy of `name` lies once fetched."""
    return cache_folder(cache_dir) / name


def read_copy(
    name: str, cache_dir: Path | None = None, *, splits: Collection[str] = ()
) -> HubCopy | None:
    """Read a fetched copy, hashes checked; None where there is none.

    Args:
        name: A name of `FETCHABLE`.
        cache_dir: Replaces the cache folder.
        splits: Those to read; all where none is named.

    Raises:
        DataDamaged: A file is missing or is not the one that was stored.
    """
    folder = copy_folder(name, cache_dir)
    if not folder.is_dir():
        return None
    remedy = f"delete {folder} and run `{fetch_command(name)}`"
    wanted = tuple(splits) or tuple(find_data_set(name).splits)
    try:
        source = json.loads((folder / "source.json").read_bytes())
        stored, revision = dict(source["files"]), str(source["revision"])
        absent = [split for split in wanted if f"{split}.jsonl" not in stored]
        if absent:
            raise DataDamaged(f"{folder / 'source.json'} names no {absent[0]}.jsonl; {remedy}.")
        contents = {split: (folder / f"{split}.jsonl").read_bytes() for split in wanted}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataDamaged(f"{folder / 'source.json'}: {error!r}; {remedy}.") from error
    files = {f"{split}.jsonl": stored[f"{split}.jsonl"] for split in wanted}
    for split, content in contents.items():
        if hashlib.sha256(content).hexdigest() != files[f"{split}.jsonl"]:
            raise DataDamaged(
                f"{folder / split}.jsonl ({content.count(10)} lines) is not the file that was "
                f"fetched: its SHA-256 differs from source.json; {remedy}."
            )
    return HubCopy(folder=folder, revision=revision, files=files, contents=contents)


def store_copy(
    name: str, entry: HubDataset, rows: Mapping[str, Iterable[Row]], commit: str, folder: Path
) -> None:
    """Write splits and `source.json` into a folder beside the final one, then rename it.

    A damaged copy gives way only then. A good one, which another process made meanwhile, stays.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}.") as scratch:
        partial = Path(scratch) / name
        partial.mkdir()
        files = {}
        for split in entry.splits:
            content = _as_json_lines(entry, split, rows)
            (partial / f"{split}.jsonl").write_bytes(content)
            files[f"{split}.jsonl"] = hashlib.sha256(content).hexdigest()
        source = {
            "dataset": entry.dataset,
            "config": entry.config,
            "data_files": dict(entry.files),
            "revision": commit if entry.pinned else f"{commit} {UNPINNED}",
            "license": entry.license,
            "license_open": entry.license_open,
            "datasets": version("datasets"),
            "files": files,
        }
        (partial / "source.json").write_text(json.dumps(source, indent=2), encoding="utf-8")
        try:
            partial.rename(folder)
        except OSError:
            try:
                if read_copy(name, folder.parent) is None:
                    raise
            except DataDamaged:
                folder.rename(Path(scratch) / "damaged")
                partial.rename(folder)


def _as_json_lines(entry: HubDataset, split: str, rows: Mapping[str, Iterable[Row]]) -> bytes:
    if split not in rows:
        raise DataDamaged(
            f"{entry.dataset}: there is no split {split!r}, only {_listed(rows)}; {REPORT_IT}."
        )
    lines = []
    for number, row in enumerate(rows[split], start=1):
        try:
            kept = {name: _kept(entry, name, row) for name in entry.fields}
        except _NotAsExpected as reason:
            place = f"row {number} of {split}"
            raise DataDamaged(f"{entry.dataset}: {place} {reason}; {REPORT_IT}.") from None
        lines.append(json.dumps(kept, ensure_ascii=False) + "\n")
    expected = entry.splits[split]
    if len(lines) != expected and (expected is not None or not lines):
        wanted = "some" if expected is None else str(expected)
        raise DataDamaged(
            f"{entry.dataset}: {split} has {len(lines)} rows where {wanted} are expected; "
            f"fetch again or use a data directory (--data-dir)."
        )
    return "".join(lines).encode()


class _NotAsExpected(Exception):
    """How a row differs from what is expected."""


def _kept(entry: HubDataset, name: str, row: Row) -> object:
    """The value of a field as JSON can hold it."""
    if name not in row:
        raise _NotAsExpected(f"has no {name!r}, only {_listed(row)}")
    value, kind = row[name], entry.fields[name]
    if value is None or (value == "" and name not in entry.blank):
        raise _NotAsExpected(f"has no {name!r}")
    if kind is bytes:
        return _sound(name, value)
    if not is_of(value, kind):
        raise _NotAsExpected(f"has {of_another_type(name, value, kind)}")
    return value


def is_of(value: object, kind: type) -> bool:
    """Whether a value of JSON has a type.

    >>> is_of(1, float), is_of(1.0, int), is_of(True, int)
    (True, False, False)
    """
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def of_another_type(name: str, value: object, kind: type) -> str:
    """What a field holds and should not, for a message."""
    found = "null" if value is None else type(value).__name__
    return f"{found} in {name!r} where {kind.__name__} is expected"


def _sound(name: str, value: object) -> dict[str, str]:
    """A sound file that was not decoded: its name, and its bytes in base64."""
    stored = value if isinstance(value, Mapping) else {}
    content, path = stored.get("bytes"), stored.get("path")
    if not content or not path:
        raise _NotAsExpected(f"has no named file of sound in {name!r}")
    return {"name": Path(path).name, "base64": base64.b64encode(content).decode()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
