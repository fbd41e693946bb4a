"""The data directory: the folder in which data sets lie that were not fetched."""

import os
from contextlib import suppress
from pathlib import Path

from bench.api.errors import DataUnavailable

DATA_VARIABLE = "BENCH_DATA_DIR"


def data_folder(explicit: Path | None = None) -> Path | None:
    """Name the directory: `--data-dir` wins over `BENCH_DATA_DIR`; None where neither is given.

    Raises:
        DataUnavailable: The folder that was named does not exist.
    """
    source, named = "--data-dir", str(explicit) if explicit is not None else ""
    if explicit is None:
        source, named = DATA_VARIABLE, os.environ.get(DATA_VARIABLE, "")
    if not named:
        return None
    folder = Path(named)
    with suppress(RuntimeError):  # a home that nobody has is no folder
        folder = folder.expanduser()
    if not folder.is_dir():
        without = "unset it" if explicit is None else "leave it out"
        raise DataUnavailable(
            f"{source} names {folder}, which is not a folder; correct the path or {without}."
        )
    return folder
