"""Data sets of the Hugging Face hub: an explicit download into a folder that remembers its source.

Nothing here runs by itself. `fetch` is what `python -m bench data fetch <name>` calls; tasks read
the copy that it left. Nothing executes code of a data set: `datasets` has not run scripts since
version 4, and sets that are scripts are read from the hub's own conversion (bAbI) or from a file
beside the script (Tiny Shakespeare).

The copy holds rows as the hub has them. `tasks/data/<name>.py` turns them into the rows of the data
directory.
"""

import base64
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.api.errors import DataDamaged, DataUnavailable, UnknownName
from tasks.data.cache import cache_folder

Row = Mapping[str, Any]
Load = Callable[["HubDataset", str], Mapping[str, Iterable[Row]]]
"""(data set, commit) -> split -> rows; by default `datasets.load_dataset`."""
Resolve = Callable[[str, str], str]
"""(data set id, revision) -> full commit; by default one question to the hub."""

_PROBE_TIMEOUT_S = 5.0
UNPINNED = "(unpinned)"
REPORT_IT = "report it to the data set's page and use a data directory (--data-dir)"
"""What to do about rows of the hub that are not as expected; fetching again brings the same."""


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """What may be fetched, and what must come back."""

    dataset: str
    revision: str
    splits: Mapping[str, int | None]
    """Split -> number of rows; None where it is not known, and any number but zero is good."""
    fields: Mapping[str, type]
    """Field -> type of its values. `bytes` is sound: the file as it was stored, never decoded."""
    license: str
    license_open: bool
    config: str = ""
    """Subset of the data set, where it has several."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Split -> file of the repository, where the splits are not those that its card names."""
    blank: tuple[str, ...] = ()
    """Fields that may be an empty text."""
    differs: str = ""
    """How rows differ from those of the data directory; part of the note of every task that uses
    them."""

    @property
    def pinned(self) -> bool:
        """Whether `revision` is one commit, not a branch that moves."""
        return len(self.revision) == 40 and set(self.revision) <= set("0123456789abcdef")

    @property
    def size(self) -> str:
        """Rows by split, in words; many splits together.

        >>> FETCHABLE["imdb"].size
        '25,000 train, 25,000 test'
        """
        counts = list(self.splits.values())
        if len(counts) > 4:
            return f"{sum(count or 0 for count in counts):,} in {len(counts)} files"
        told = ((split, "?" if n is None else f"{n:,}") for split, n in self.splits.items())
        return ", ".join(f"{count} {split}" for split, count in told)


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


BABI_NUMBERS = range(1, 21)
_BABI_STORIES = {15: 250, 17: 125, 18: 199, 20: 93} | dict.fromkeys((4, 16, 19), 1000)
_BABI_TRAIN = {18: 1978, 20: 933}

# Unpinned entries have no commit that was checked. Counts and fields were read on pages of the hub,
# in public code that uses the sets, or counted in the data directory where it has the same files.
FETCHABLE: dict[str, HubDataset] = {
    "aeslc": HubDataset(
        dataset="Yale-LILY/aeslc",
        revision="main",
        splits={"train": 14436, "validation": 1960, "test": 1906},
        fields={"email_body": str, "subject_line": str},
        license="CC BY-NC-SA 4.0",
        license_open=False,
        differs="one subject a mail; the local copy has three more in validation and test",
    ),
    "ag_news": HubDataset(
        dataset="fancyzhx/ag_news",
        revision="eb185aade064a813bc0b7f42de02595523103ca4",
        splits={"train": 120000, "test": 7600},
        fields={"text": str, "label": int},
        license="research and non-commercial use",
        license_open=False,
        differs="titles before the descriptions, and all 120000 training texts; the local copy has "
        "10001 of these, without titles",
    ),
    "babi": HubDataset(
        dataset="facebook/babi_qa",
        # The hub's own conversion of a set that is a script; no commit of it was checked.
        revision="refs/convert/parquet",
        # A row is a story with all its questions.
        splits={
            f"qa{number}_{part}": _BABI_TRAIN.get(number, 10 * _BABI_STORIES.get(number, 200))
            if part == "train"
            else _BABI_STORIES.get(number, 200)
            for number in BABI_NUMBERS
            for part in ("train", "test")
        },
        fields={"story": dict},
        files={
            f"qa{number}_{part}": f"en-10k-qa{number}/{part}/0000.parquet"
            for number in BABI_NUMBERS
            for part in ("train", "test")
        },
        license="CC BY 3.0",
        license_open=True,
        differs="the same questions, and those of task 3's training part",
    ),
    "django": HubDataset(
        dataset="AhmedSSoliman/DJANGO",
        # The last commit that changed data; later ones edit the README.
        revision="a4d45b5ba103ac4d3fd5ac40e7706200eb004372",
        splits={"train": 16000, "validation": 1000, "test": 1805},
        fields={"nl": str, "code": str},
        license="MIT (the lines; the copy states none)",
        license_open=True,
        differs="the same 18805 lines in parts that were drawn at random; locally the parts "
        "of the literature, which follow the order of the lines",
    ),
    "fsdd": HubDataset(
        dataset="mteb/free-spoken-digit-dataset",
        revision="c34455c99604d35cb8d27328c267be1478efc903",
        splits={"train": None, "test": None},
        fields={"audio": bytes, "label": int},
        license="CC BY-SA 4.0",
        license_open=True,
        differs="the same recordings, in the data directory's parts",
    ),
    "imdb": HubDataset(
        dataset="stanfordnlp/imdb",
        revision="e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
        splits={"train": 25000, "test": 25000},
        fields={"text": str, "label": int},
        license="no license stated",
        license_open=False,
        differs="all 25000 training and 25000 test reviews, shuffled; locally one third and a "
        "fifth of them",
    ),
    "multi30k": HubDataset(
        dataset="bentrevett/multi30k",
        # The last commit that changed data; later ones edit the README.
        revision="37e118600232bb5298ca011a8a7e7a44e863c36a",
        splits={"train": 29000, "validation": 1014, "test": 1000},
        fields={"de": str, "en": str},
        license="no licence stated; images: Flickr terms, non-commercial research and education",
        license_open=False,
    ),
    "snli": HubDataset(
        dataset="stanfordnlp/snli",
        revision="cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
        config="plain_text",
        splits={"train": 550152, "validation": 10000, "test": 10000},
        fields={"premise": str, "hypothesis": str, "label": int},
        blank=("premise", "hypothesis"),
        license="CC BY-SA 4.0",
        license_open=True,
        differs="the whole training part and no revised pairs; locally 18000 training pairs "
        "and both sets of revised ones",
    ),
    "sst2_sentences": HubDataset(
        dataset="SetFit/sst2",
        revision="main",
        splits={"train": 6920, "validation": 872, "test": 1821},
        fields={"text": str, "label": int},
        license="no license stated",
        license_open=False,
    ),
    "stsb": HubDataset(
        dataset="sentence-transformers/stsb",
        revision="ab7a5ac0e35aa22088bdcf23e7fd99b220e53308",
        splits={"train": 5749, "validation": 1500, "test": 1379},
        fields={"sentence1": str, "sentence2": str, "score": float},
        license="no licence stated on the card; sentences have the terms of their sources",
        license_open=False,
    ),
    "tinyshakespeare": HubDataset(
        dataset="Trelis/tiny-shakespeare",
        revision="2225a5674b252d623cfb151ef099d179629c2f49",
        splits={"train": 40000},
        fields={"text": str},
        # Its tables hold pieces that overlap; beside them lies the text itself.
        files={"train": "input.txt"},
        blank=("text",),
        license="public domain (the plays)",
        license_open=True,
        differs="the same text and parts",
    ),
    "wikitext2": HubDataset(
        dataset="Salesforce/wikitext",
        revision="b08601e04326c79dfdd32d625aee71d232d685c3",
        config="wikitext-2-v1",
        splits={"train": 36718, "validation": 3760, "test": 4358},
        fields={"text": str},
        blank=("text",),
        license="CC BY-SA 3.0",
        license_open=True,
        differs="the same validation and test, and the training part",
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
    entry = find_data_set(name)
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
    rows = (load or _load_from_hub)(entry, commit)
    _store(name, entry, rows, commit, folder)
    return folder


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


def find_data_set(name: str) -> HubDataset:
    """Look up a data set that can be fetched.

    Raises:
        UnknownName: There is none of this name.
    """
    if name not in FETCHABLE:
        raise UnknownName.among("data set to fetch", name, FETCHABLE)
    return FETCHABLE[name]


def _ask_hub(dataset: str, revision: str) -> str:
    """Ask for the commit of `revision`: offline this fails in seconds, not in retries."""
    # the network's modules cost every command a tenth of its start
    import urllib.parse  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415
    from http.client import HTTPException  # noqa: PLC0415

    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    quoted = urllib.parse.quote(revision, safe="")
    url = f"{endpoint}/api/datasets/{dataset}/revision/{quoted}"
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_TIMEOUT_S) as answer:
            return str(json.load(answer)["sha"])
    except (OSError, ValueError, KeyError, HTTPException) as error:
        raise _unreachable(dataset, error) from error


def _load_from_hub(entry: HubDataset, commit: str) -> Mapping[str, Iterable[Row]]:
    import datasets  # noqa: PLC0415 - a second to import

    try:
        loaded = datasets.load_dataset(
            entry.dataset,
            entry.config or None,
            data_files=dict(entry.files) or None,
            revision=commit,
        )
        for name, kind in entry.fields.items():
            if kind is bytes:  # decoding would need a library for sound
                loaded = loaded.cast_column(name, datasets.Audio(decode=False))
    except Exception as error:  # four libraries below it raise their own kinds
        raise _unreachable(entry.dataset, error) from error
    found: Mapping[str, Iterable[Row]] = loaded
    return found


def _unreachable(dataset: str, error: Exception) -> DataUnavailable:
    reason = " ".join(str(error).split()) or type(error).__name__
    return DataUnavailable(
        f"{dataset} could not be fetched from the Hugging Face hub ({reason}); check the network "
        f"or name a data directory with --data-dir."
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
        except OSError:  # another process was faster; its copy counts if it is good
            if read_copy(name, folder.parent) is None:
                raise


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


def _kept(entry: HubDataset, name: str, row: Row) -> Any:
    """The value of a field as JSON can hold it."""
    if name not in row:
        raise _NotAsExpected(f"has no {name!r}, only {_listed(row)}")
    value, kind = row[name], entry.fields[name]
    if value is None or (value == "" and name not in entry.blank):
        raise _NotAsExpected(f"has no {name!r}")
    if kind is bytes:
        return _sound(name, value)
    if not isinstance(value, (int, float) if kind is float else kind):
        found = type(value).__name__
        raise _NotAsExpected(f"has {found} in {name!r} where {kind.__name__} is expected")
    return value


def _sound(name: str, value: Any) -> dict[str, str]:
    """A sound file that was not decoded: its name, and its bytes in base64."""
    stored = value if isinstance(value, Mapping) else {}
    content, path = stored.get("bytes"), stored.get("path")
    if not content or not path:
        raise _NotAsExpected(f"has no named file of sound in {name!r}")
    return {"name": Path(path).name, "base64": base64.b64encode(content).decode()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
