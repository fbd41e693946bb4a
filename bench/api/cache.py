"""The folder for what can be made again: fetched copies, trained vocabularies, certificates."""

import os
import tempfile
from pathlib import Path

from bench.api.whole_file import written_whole

CACHE_VARIABLE = "BENCH_CACHE_DIR"
NO_CACHE = Path(os.devnull) / "no-home-folder"
"""A folder that never is, where there is no home folder to have one in."""


def cache_folder(explicit: Path | None = None) -> Path:
    """Name the cache folder: the argument, `BENCH_CACHE_DIR`, or `~/.cache/attention-bench`.

    The folder need not exist; whoever writes creates it.
    """
    if explicit is not None:
        return explicit.expanduser()
    named = os.environ.get(CACHE_VARIABLE)
    try:
        return Path(named).expanduser() if named else Path.home() / ".cache" / "attention-bench"
    except RuntimeError:  # nobody knows the home folder
        return NO_CACHE


def keep(path: Path, content: bytes) -> bool:
    """Write a file of the cache if that can be done; what it holds can be made again.

    Returns:
        Whether it was written. `unwritable_cache` says why not, once for a whole run.
    """
    try:
        with written_whole(path) as draft:
            draft.write_bytes(content)
    except OSError:
        return False
    return True


def unwritable_cache() -> str:
    """Why nothing can be kept in the cache, as one sentence; empty where all is well."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
    except OSError as error:
        return (
            f"nothing can be kept in the cache ({error}), so it is made again in every run; "
            f"name a folder that can be written to in {CACHE_VARIABLE}."
        )
    return ""
