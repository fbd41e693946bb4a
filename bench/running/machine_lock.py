"""A lock of the whole machine, so that what is timed is alone on it."""

import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from bench.api.errors import BenchError

LOCK = Path("/tmp/attention-bench.lock")
"""One file for all users of a machine, wherever each has temporary files."""
LOCK_VARIABLE = "BENCH_LOCK_FILE"
"""Environment variable that names another one, for tests."""
EVERYBODY = 0o666
POLL_S = 0.2
"""How often who may not wait for ever looks whether the lock is free (s)."""


class MachineBusy(BenchError):
    """Another run held the machine until the time was over."""


def lock_file() -> Path:
    """The file whose lock is that of the machine."""
    return Path(os.environ.get(LOCK_VARIABLE) or LOCK)


@contextmanager
def machine_lock(
    *, exclusive: bool, say: Callable[[str], None], instead: str = "", end_s: float = math.inf
) -> Iterator[None]:
    """Keep what is timed alone on the machine: training shares the lock, timing owns it.

    Nobody takes it twice at a time: a process that owns it would wait for itself.

    Args:
        exclusive: Whether this is timing.
        say: Told whom this waits for, and that there can be no lock.
        instead: What does without waiting, for that sentence.
        end_s: When waiting ends, by `time.monotonic`.

    Raises:
        MachineBusy: The lock was not free until `end_s`.
    """
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    path = lock_file()
    try:
        file = _opened(path)
    except OSError as error:
        if exclusive:
            say(f"warning: no lock of this machine ({error}), so timing may not be alone on it.")
        yield
        return
    with file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = f"; {instead}" if instead else ""
            say(
                f"waiting for another run on this machine ({_holders(file)}{path}), "
                f"so that timing stays alone{hint} ..."
            )
            _wait(file, kind, end_s)
        _write(file, f"+ {os.getpid()} {time.strftime('%Y-%m-%d %H:%M:%S')}\n", alone=exclusive)
        try:
            yield
        finally:
            _write(file, f"- {os.getpid()}\n", alone=exclusive)


def _wait(file: FileIO, kind: int, end_s: float) -> None:
    """Take the lock when it is free, if there is time until then."""
    if end_s == math.inf:
        fcntl.flock(file, kind)
        return
    while (left := end_s - time.monotonic()) > 0:
        time.sleep(min(POLL_S, left))
        with suppress(BlockingIOError):
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
    holders = _holders(file).removesuffix("; ")
    whom = f" ({holders})" if holders else ""
    raise MachineBusy(f"another run held this machine until the time was over{whom}.")


def _opened(path: Path) -> FileIO:
    """Open the file, or make it for everybody, whatever mask the first user has.

    One that is there is not opened as if it might be made: in a folder like `/tmp` Linux refuses
    that to everyone but its owner. A link is not followed, for anybody may have put it there.
    """
    kept = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW
    try:
        number = os.open(path, kept)
    except FileNotFoundError:
        number = os.open(path, kept | os.O_CREAT, EVERYBODY)
        os.fchmod(number, EVERYBODY)
    return FileIO(number, "a+")


def _write(file: FileIO, line: str, *, alone: bool) -> None:
    """Add who holds the lock, or holds it no more; lines are added whole, whoever adds another.

    A full disk takes no line, and is no reason to stop.
    """
    with suppress(OSError):
        if alone:
            file.truncate(0)  # nobody else holds it now
        file.write(line.encode())


def _holders(file: FileIO) -> str:
    """Process and begin of everyone who holds the lock, as far as it is written."""
    file.seek(0)
    since: dict[str, str] = {}
    for line in file.read().decode(errors="replace").splitlines():
        sign, _, rest = line.partition(" ")
        process, _, begun = rest.partition(" ")
        if sign == "+" and process.isdigit():
            since[process] = begun
        else:
            since.pop(process, None)
    alive = ((process, begun) for process, begun in since.items() if _lives(int(process)))
    return "".join(f"PID {process} since {begun}; " for process, begun in alive)


def _lives(process: int) -> bool:
    """Whether there is such a process; one that was killed has left its line."""
    try:
        os.kill(process, 0)
    except PermissionError:  # that of another user
        return True
    except OSError:
        return False
    return True
