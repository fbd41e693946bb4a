"""Data sets of the Hugging Face hub: an explicit download into a folder that remembers its source.

Nothing here runs by itself. `fetch` is what `python -m bench data fetch <name>` calls; tasks read
the copy that it left.
"""

import hashlib
import json
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.api.errors import DataDamaged, DataUnavailable, UnknownName
from tasks.sources.cache import cache_folder

Row = Mapping[str, Any]
Load = Callable[[str, str], Mapping[str, Iterable[Row]]]
"""(data set id, revision) -> split -> rows; by default `datasets.load_dataset`."""
Resolve = Callable[[str, str], str]
"""(data set id, revision) -> full commit; by default one question to the hub."""

_PROBE_TIMEOUT_S = 5.0
UNPINNED = "(unpinned)"


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """What may be fetched, and what must come back."""

    dataset: str
    revision: str
    splits: Mapping[str, int]
    """Split -> number of rows."""
    fields: tuple[str, ...]
    license: str
    license_open: bool

    @property
    def pinned(self) -> bool:
        """Whether `revision` is one commit, not a branch that moves."""
        return len(self.revision) == 40 and set(self.revision) <= set("0123456789abcdef")


@dataclass(frozen=True, kw_only=True)
class HubCopy:
    """A fetched data set as it lies in the cache."""

    folder: Path
    revision: str
    """Commit that was fetched; it ends in `(unpinned)` where another may be fetched tomorrow."""
    splits: Mapping[str, tuple[dict[str, Any], ...]]
    files: Mapping[str, str]
    """File name -> SHA-256."""


FETCHABLE: dict[str, HubDataset] = {
    "aeslc": HubDataset(
        dataset="Yale-LILY/aeslc",
        # Unpinned: no commit has been checked.
        revision="main",
        splits={"train": 14436, "validation": 1960, "test": 1906},
        fields=("email_body", "subject_line"),
        license="CC BY-NC-SA 4.0",
        license_open=False,
    ),
    "multi30k": HubDataset(
        dataset="bentrevett/multi30k",
        # The last commit that changed data; later ones edit the README.
        revision="37e118600232bb5298ca011a8a7e7a44e863c36a",
        splits={"train": 29000, "validation": 1014, "test": 1000},
        fields=("de", "en"),
        license="no licence stated; images: Flickr terms, non-commercial research and education",
        license_open=False,
    ),
    "sst2_sentences": HubDataset(
        dataset="SetFit/sst2",
        revision="main",  # no commit is known, so it is not pinned
        splits={"train": 6920, "validation": 872, "test": 1821},
        fields=("text", "label"),
        license="no license stated",
        license_open=False,
    ),
    "stsb": HubDataset(
        dataset="sentence-transformers/stsb",
        revision="ab7a5ac0e35aa22088bdcf23e7fd99b220e53308",
        splits={"train": 5749, "validation": 1500, "test": 1379},
        fields=("sentence1", "sentence2", "score"),
        license="no licence stated on the card; sentences have the terms of their sources",
        license_open=False,
    ),
}


def fetch_command(name: str) -> str:
    """Return the command that fetches `name`, for messages."""
    return f"python -m bench data fetch {name}"


def copy_folder(name: str, cache_dir: Path | None = None) -> Path:
    """Return where the copy of `name` lies once fetched."""
    return cache_folder(cache_dir) / name


def fetch(
    name: str,
    cache_dir: Path | None = None,
    *,
    offline: bool = False,
    load: Load | None = None,
    resolve: Resolve | None = None,
) -> Path:
    """Download one data set, check it, and put it into the cache as JSON lines.

    A good copy that is already there is returned without asking the hub; a damaged one is
    replaced. The folder appears at once, whole, with `source.json` telling where it came from.

    Args:
        name: A name of `FETCHABLE`.
        cache_dir: Replaces the cache folder.
        offline: Use only what is there. `HF_HUB_OFFLINE=1` means the same.
        load: Replaces the download, in tests.
        resolve: Replaces the question to the hub, in tests.

    Raises:
        DataUnavailable: There is no good copy and the hub cannot be asked.
        DataDamaged: What came is not what the registry expects.
    """
    entry = _entry(name)
    folder = copy_folder(name, cache_dir)
    try:
        if read_copy(name, cache_dir) is not None:
            return folder
    except DataDamaged:
        shutil.rmtree(folder)
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "TRUE", "YES", "ON"}:
        raise DataUnavailable(
            f"{name} is not at {folder} and offline mode is on; leave out --offline, unset "
            f"HF_HUB_OFFLINE and run `{fetch_command(name)}`."
        )
    commit = (resolve or _ask_hub)(entry.dataset, entry.revision)
    rows = (load or _load_from_hub)(entry.dataset, commit)
    _store(name, entry, rows, commit, folder)
    return folder


def read_copy(name: str, cache_dir: Path | None = None) -> HubCopy | None:
    """Read a fetched copy, hashes checked; None where there is none.

    Raises:
        DataDamaged: A file is missing or is not the one that was stored.
    """
    folder = copy_folder(name, cache_dir)
    if not folder.is_dir():
        return None
    remedy = f"delete {folder} and run `{fetch_command(name)}`"
    try:
        source = json.loads((folder / "source.json").read_bytes())
        files, revision = dict(source["files"]), str(source["revision"])
        contents = {file: (folder / file).read_bytes() for file in files}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataDamaged(f"{folder / 'source.json'}: {error!r}; {remedy}.") from error
    for file, content in contents.items():
        if hashlib.sha256(content).hexdigest() != files[file]:
            raise DataDamaged(
                f"{folder / file} ({content.count(10)} lines) is not the file that was fetched: "
                f"its SHA-256 differs from source.json; {remedy}."
            )
    splits = {
        Path(file).stem: tuple(json.loads(line) for line in content.decode().split("\n")[:-1])
        for file, content in contents.items()
    }
    return HubCopy(folder=folder, revision=revision, splits=splits, files=files)


def _entry(name: str) -> HubDataset:
    if name not in FETCHABLE:
        raise UnknownName.among("data set to fetch", name, FETCHABLE)
    return FETCHABLE[name]


def _ask_hub(dataset: str, revision: str) -> str:
    """Ask for the commit of `revision`: without a network this fails in seconds, not in retries."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/api/datasets/{dataset}/revision/{revision}"
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_TIMEOUT_S) as answer:
            return str(json.load(answer)["sha"])
    except (OSError, ValueError, KeyError, HTTPException) as error:
        raise _unreachable(dataset, error) from error


def _load_from_hub(dataset: str, revision: str) -> Mapping[str, Iterable[Row]]:
    import datasets  # noqa: PLC0415 - a second to import

    try:
        loaded: Mapping[str, Iterable[Row]] = datasets.load_dataset(dataset, revision=revision)
    except Exception as error:  # four libraries below it raise their own kinds
        raise _unreachable(dataset, error) from error
    return loaded


def _unreachable(dataset: str, error: Exception) -> DataUnavailable:
    reason = " ".join(str(error).split()) or type(error).__name__
    return DataUnavailable(
        f"{dataset} could not be fetched from the Hugging Face hub ({reason}); check the network "
        f"or name a local mirror with --data-dir."
    )


def _store(
    name: str, entry: HubDataset, rows: Mapping[str, Iterable[Row]], commit: str, folder: Path
) -> None:
    """Write splits and `source.json` into a folder beside the final one, then rename it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}.") as scratch:
        partial = Path(scratch) / name
        partial.mkdir()
        files = {}
        for split, expected in entry.splits.items():
            content = _as_json_lines(entry, split, rows.get(split, ()), expected)
            (partial / f"{split}.jsonl").write_bytes(content)
            files[f"{split}.jsonl"] = hashlib.sha256(content).hexdigest()
        source = {
            "dataset": entry.dataset,
            "revision": commit if entry.pinned else f"{commit} {UNPINNED}",
            "license": entry.license,
            "license_open": entry.license_open,
            "datasets": version("datasets"),
            "files": files,
        }
        (partial / "source.json").write_text(json.dumps(source, indent=2), encoding="utf-8")
        try:
            partial.rename(folder)
        except OSError:  # another process was faster; its copy counts if it is good
            if read_copy(name, folder.parent) is None:
                raise


def _as_json_lines(entry: HubDataset, split: str, rows: Iterable[Row], expected: int) -> bytes:
    lines = []
    for number, row in enumerate(rows, start=1):
        absent = [field for field in entry.fields if row.get(field) in (None, "")]
        if absent:
            raise DataDamaged(
                f"{entry.dataset}: row {number} of {split} has no {absent[0]!r}; "
                f"report it to the data set's page and use a local mirror (--data-dir)."
            )
        kept = {field: row[field] for field in entry.fields}
        lines.append(json.dumps(kept, ensure_ascii=False) + "\n")
    if len(lines) != expected:
        raise DataDamaged(
            f"{entry.dataset}: {split} has {len(lines)} rows where {expected} are expected; "
            f"fetch again or use a local mirror (--data-dir)."
        )
    return "".join(lines).encode()
