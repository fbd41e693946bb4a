"""A lock of the whole machine, so that what is timed is alone on it."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def machine_lock(*, exclusive: bool, say: Callable[[str], None]) -> Iterator[None]:
    """Keep timed cells alone on the machine: training shares the lock, timing owns it."""
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        path = Path(tempfile.gettempdir()) / f"attention-bench-{os.getuid()}.lock"
        file = path.open("a")
    except OSError as error:
        if exclusive:
            say(f"warning: no lock of this machine ({error}), so timing may not be alone on it.")
        yield
        return
    with file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run on this machine ({path}), so that timing stays alone ...")
            fcntl.flock(file, kind)
        yield
