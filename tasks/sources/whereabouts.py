"""Where a data set lies on this machine, without reading it: for lists and for plans of a run."""

from pathlib import Path

from tasks.sources.hub import FETCHABLE, copy_folder
from tasks.sources.mirror import data_folder


def whereabouts(name: str, data_dir: Path | None = None) -> Path | None:
    """Folder of the mirror or else of the fetched copy, as loading would choose; None for neither.

    Args:
        name: Of the data set, as a task's `data_sets` has it.
        data_dir: The mirror, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.

    Raises:
        DataUnavailable: The mirror that was named is no folder.
    """
    mirror = data_folder(data_dir)
    places = [mirror / name] if mirror is not None else []
    if name in FETCHABLE:
        places.append(copy_folder(name))
    return next((place for place in places if place.is_dir()), None)
