"""Data that a cell read: file names with hashes, so that a result is known to be of other data."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from bench.api.cache import cache_folder
from bench.api.data_folder import data_folder
from bench.api.errors import DataUnavailable
from bench.api.loading import loaded_plugins

CODE = (".py", ".pyc")
COPIES = (".jsonl",)
"""Files of the cache that are data; the rest of it is made of them."""


class DataFiles:
    """Names of data files: `data/...`, `cache/...` for fetched copies, `plugins/...`."""

    def __init__(self, data_dir: Path | None) -> None:
        """Take the folders of a run: its data directory, the cache, and those of its plug-ins."""
        folders = [("cache", cache_folder())]
        with suppress(DataUnavailable):  # which each cell that needs it says by itself
            if (given := data_folder(data_dir)) is not None:
                folders.insert(0, ("data", given))
        folders += [("plugins", one.path.parent) for one in loaded_plugins().values()]
        self._folders = [(title, *_ways(path)) for title, path in folders]

    def hashes(self, opened: Iterable[str]) -> dict[str, str]:
        """Name -> start of the SHA-256 of every file among these that is data."""
        found = {}
        for one in sorted(set(opened)):
            given, real = _ways(one)
            name = self._name(given, real)
            if name and (digest := self._digest(real)):
                found[name] = digest
        return found

    def changed(self, stored: Mapping[str, str]) -> list[str]:
        """Names of the files that are here with other content; what is not here has not changed."""
        return [
            name
            for name, digest in stored.items()
            if (here := self._digests(name) - {""}) and digest not in here
        ]

    def _name(self, *ways: Path) -> str:
        """Name of a file that is data; empty for any other.

        A symbolic link in a folder may lead out of it, so the path is tried as it was given first.
        """
        for title, *folders in self._folders:
            for path, folder in zip(ways, folders, strict=True):
                if path.is_relative_to(folder):
                    made = title == "cache" and path.suffix not in COPIES
                    name = f"{title}/{path.relative_to(folder).as_posix()}"
                    return "" if made or path.suffix in CODE else name
        return ""

    def _digests(self, name: str) -> set[str]:
        title, _, rest = name.partition("/")
        return {self._digest(folder / rest) for kind, _, folder in self._folders if kind == title}

    def _digest(self, path: Path) -> str:
        """Start of the SHA-256 of a file; empty where it cannot be read."""
        try:
            found = path.stat()
            return _content(path, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        except OSError:
            return ""


def _ways(path: Path | str) -> tuple[Path, Path]:
    """A path as it was given, and as it is without symbolic links."""
    return Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100  absolute() keeps ".."


@cache
def _content(path: Path, written_ns: int, changed_ns: int, size: int) -> str:
    """Start of the SHA-256 of a file, which a process reads once, and again if it was written.

    Copying may keep the time of writing, but not that of the change.
    """
    return sha256(path.read_bytes()).hexdigest()[:12]
