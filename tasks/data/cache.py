"""The folder for what can be made again: fetched copies and trained vocabularies."""

import os
import tempfile
from pathlib import Path

CACHE_VARIABLE = "BENCH_CACHE_DIR"


def cache_folder(explicit: Path | None = None) -> Path:
    """Name the cache folder: the argument, `BENCH_CACHE_DIR`, or `~/.cache/attention-bench`.

    The folder need not exist; whoever writes creates it.
    """
    if explicit is not None:
        return explicit.expanduser()
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "attention-bench"


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` so that a reader sees the old file or the whole new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
