"""Standard output holds the answer of a command; what plug-ins print goes to standard error."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

OUTPUT, ERRORS = 1, 2
"""File descriptors."""


@contextmanager
def prints_to_standard_error() -> Iterator[None]:
    """Send to standard error what is printed in the block, by Python or beneath it."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    try:
        kept = os.dup(OUTPUT)
    except OSError:  # standard output was closed before the program began
        yield
        return
    try:
        os.dup2(ERRORS, OUTPUT)
        with redirect_stdout(_errors_stream()):
            yield
    finally:
        os.dup2(kept, OUTPUT)
        os.close(kept)


def _errors_stream() -> TextIO:
    """Standard error as a stream of its own, because somebody may close it."""
    raw = io.FileIO(ERRORS, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=True
    )


def leave_standard_output() -> None:
    """Send all that this process prints from now on to standard error."""
    with suppress(OSError):
        os.dup2(ERRORS, OUTPUT)
