"""Files that Python code opens for reading, heard from the interpreter itself."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

_opened: set[str] | None = None
"""Paths that were opened for reading, while somebody collects them."""
_hooked = False


@contextmanager
def watch_opened() -> Generator[set[str]]:
    """Collect the path of every file that Python code opens for reading inside the block.

    Watching the interpreter needs no line in a task, and sees what a plug-in reads as well.
    """
    global _opened, _hooked  # noqa: PLW0603  an audit hook can be set once and never removed
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    before, _opened = _opened, set()
    try:
        yield _opened
    finally:
        _opened = before


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or _opened is None:
        return
    path, mode, flags = arguments
    writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    if not isinstance(mode, str) and isinstance(flags, int):
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
    if not writes and isinstance(path, str | bytes):
        _opened.add(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100  the hook must be cheap
