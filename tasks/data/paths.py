"""Where a data set lies on this machine, without reading it: for lists and for plans of a run."""

from pathlib import Path

from bench.api.data_folder import data_folder
from tasks.data.hub_copies import copy_folder
from tasks.data.hub_sets import FETCHABLE


def path_of(name: str, data_dir: Path | None = None) -> Path | None:
    """Folder that loading would read: of the data directory, else the fetched copy; or None.

    Args:
        name: Of the data set, as a task's `data_sets` has it.
        data_dir: The directory, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.

    Raises:
        DataUnavailable: The data directory that was named is no folder.
    """
    directory = data_folder(data_dir)
    places = [directory / name] if directory is not None else []
    if name in FETCHABLE:
        places.append(copy_folder(name))
    return next((place for place in places if place.is_dir()), None)
