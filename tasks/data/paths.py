"""Where a data set lies on this machine: which copy loading reads, and what is said without one."""

from dataclasses import dataclass
from pathlib import Path

from bench.api.data_folder import DATA_VARIABLE, data_folder
from bench.api.errors import DataUnavailable
from tasks.data.corpus import Origin
from tasks.data.hub_copies import copy_folder
from tasks.data.hub_sets import FETCHABLE, fetch_command
from tasks.data.originals import ORIGINALS


@dataclass(frozen=True, kw_only=True)
class DataPlace:
    """A folder with a data set; whether it is whole is seen when it is read."""

    path: Path
    origin: Origin


def place_of(
    name: str,
    data_dir: Path | None = None,
    *,
    needs: str = "",
    cache_dir: Path | None = None,
) -> DataPlace | None:
    """Folder that loading reads: of the data directory, else the fetched copy; or None.

    Nothing in it is read, so that lists and plans of a run may ask.

    Args:
        name: Of the data set, as a task's `data_sets` has it.
        data_dir: The directory, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.
        needs: File without which the folder of the data directory does not count.
        cache_dir: Replaces the cache folder.

    Raises:
        DataUnavailable: The data directory that was named is no folder.
    """
    directory = data_folder(data_dir)
    if directory is not None:
        folder = directory / name
        if folder.is_dir() and (folder / needs).exists():
            return DataPlace(path=folder, origin="directory")
    copy = copy_folder(name, cache_dir)
    return DataPlace(path=copy, origin="hub") if name in FETCHABLE and copy.is_dir() else None


def may_lack(name: str) -> str:
    """File that a data directory may lack, so that some options of a task read the fetched copy.

    Args:
        name: Of the data set.

    Returns:
        Its name, for `needs` of `place_of`; empty where all options read the same folder.
    """
    return FETCHABLE[name].may_lack if name in FETCHABLE else ""


def not_here(
    name: str,
    data_dir: Path | None = None,
    *,
    needs: str = "",
    cache_dir: Path | None = None,
) -> DataUnavailable:
    """Return the error of a data set without a place: where was looked, and what to do.

    Args:
        name: Of the data set.
        data_dir: As for `place_of`, which found nothing.
        needs: As for `place_of`.
        cache_dir: As for `place_of`.

    Raises:
        DataUnavailable: The data directory that was named is no folder.
    """
    directory = data_folder(data_dir)
    looked = f"{directory} has no folder {name}" if directory else "no data directory is named"
    if directory is not None and (directory / name).is_dir():
        looked = f"{directory / name} has no {needs}"
    fetch = f"run `{fetch_command(name)}` or " if name in FETCHABLE else ""
    by_hand = " and ".join(one.address for one in ORIGINALS.get(name, ()))
    if by_hand:
        fetch = f"copy its files from {by_hand} as `bench data list` says, and "
    nothing = f", nothing at {copy_folder(name, cache_dir)}" if name in FETCHABLE else ""
    return DataUnavailable(
        f"{name} is not on this machine ({looked}{nothing}); {fetch}name a data directory with "
        f"--data-dir or {DATA_VARIABLE}."
    )
