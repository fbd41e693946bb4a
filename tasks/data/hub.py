"""Fetching of data sets from the Hugging Face hub.

Nothing here runs by itself. `fetch` is what `python -m bench data fetch <name>` calls; tasks read
the copy that it left. Nothing executes code of a data set: `datasets` has not run scripts since
version 4, and sets that are scripts are read from the hub's own conversion (bAbI) or from a file
beside the script (Tiny Shakespeare).
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.hub_copies import Row, copy_folder, read_copy, store_copy
from tasks.data.hub_sets import HubDataset, fetch_command, find_data_set

Load = Callable[["HubDataset", str], Mapping[str, Iterable[Row]]]
"""(data set, commit) -> split -> rows; by default `datasets.load_dataset`."""
Resolve = Callable[[str, str], str]
"""(data set id, revision) -> full commit; by default one question to the hub."""

_PROBE_TIMEOUT_S = 5.0


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
    replaced once all rows have come. The folder appears at once, whole, with `source.json` telling
    where it came from.

    Args:
        name: A name of `FETCHABLE`.
        cache_dir: Replaces the cache folder.
        offline: Use only what is there. `HF_HUB_OFFLINE=1` means the same.
        load: Replaces the download, in tests.
        resolve: Replaces the question to the hub, in tests.

    Raises:
        DataUnavailable: There is no good copy and the hub cannot be asked.
        DataDamaged: What came is not what the registry expects, or the copy is damaged and the hub
            must not be asked.
    """
    entry = find_data_set(name)
    folder = copy_folder(name, cache_dir)
    damage: DataDamaged | None = None
    try:
        if read_copy(name, cache_dir) is not None:
            return folder
    except DataDamaged as error:
        damage = error
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "TRUE", "YES", "ON"}:
        raise damage or DataUnavailable(
            f"{name} is not at {folder} and offline mode is on; unset HF_HUB_OFFLINE and run "
            f"`{fetch_command(name)}`."
        )
    commit = (resolve or _ask_hub)(entry.dataset, entry.revision)
    rows = (load or _load_from_hub)(entry, commit)
    store_copy(name, entry, rows, commit, folder)
    return folder


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
        f"{dataset} could not be fetched from the Hugging Face hub ({reason}); check the network, "
        "or set BENCH_DATA_DIR to a folder that holds the data."
    )
