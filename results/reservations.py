"""Reservations of cells among the processes that write to one run folder (POSIX only)."""

import fcntl
import os
from pathlib import Path


class Reservations:
    """Locks that vanish with their process, so that a killed run leaves none behind.

    One byte of one file stands for each cell id. Such locks belong to a process: they exclude
    other processes, never threads, and one process needs one `Reservations` a folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: tuple[int, int] | None = None

    def take(self, cell_id: str) -> bool:
        """Reserve a cell without waiting; False if another process holds it.

        Raises:
            OSError: The file of the locks cannot be opened.
        """
        descriptor = self._descriptor()
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(cell_id, 16))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def drop(self, cell_id: str) -> None:
        """Give a cell back."""
        fcntl.lockf(self._descriptor(), fcntl.LOCK_UN, 1, int(cell_id, 16))

    def close(self) -> None:
        """Give everything back."""
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def _descriptor(self) -> int:
        if self._open is not None and self._open[0] != os.getpid():
            # Inherited by a fork; closing it here leaves the locks of the parent alone.
            self.close()
        if self._open is None:
            # as other files of the folder: who may write to those may reserve, too
            self._open = os.getpid(), os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        return self._open[1]
