"""How the program ends: whatever the user, the disk or the terminal did, one sentence says it."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

import click

from bench.api.errors import BenchError
from bench.api.foreign_prints import ERRORS, OUTPUT
from bench.api.plain_text import shortened, storable

DONE, CELLS_FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes."""
LONGEST_SENTENCE = 4000
"""Characters; a message may quote a line of a file that has megabytes."""


def ended_with_a_sentence(program: Callable[[], object]) -> int:
    """Run a program to its end; its exit code. An error that nobody foresaw passes through."""
    _open_closed_streams()
    try:
        return _code_after(program)
    except (click.exceptions.Abort, KeyboardInterrupt):
        ignore_interrupts()
        _say("interrupted.")
        return INTERRUPTED
    except OSError as error:
        _give_up_output()
        if error.errno != errno.EPIPE:  # whoever reads no further has seen enough
            _say(system_sentence(error))
    except (click.ClickException, BenchError, MemoryError, RecursionError) as error:
        _say(_sentence(error))
    return WRONG_USE


def _open_closed_streams() -> None:
    """Let what is printed go nowhere where a stream was closed before the program began (`>&-`).

    Python has None in its place, and the next file that is opened would get its number, and with
    it what libraries print.
    """
    sys.stdout = sys.stdout or _nowhere(OUTPUT)
    sys.stderr = sys.stderr or _nowhere(ERRORS)


def _nowhere(number: int) -> TextIO:
    """A stream that keeps nothing, under this number too where no other file has it."""
    opened = os.open(os.devnull, os.O_WRONLY)
    try:
        os.fstat(number)
    except OSError:
        os.dup2(opened, number)
    os.set_inheritable(opened, True)  # a command that starts over has it, too
    return os.fdopen(opened, "w", encoding="utf-8")


def _code_after(program: Callable[[], object]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name of a file may be no text
    try:
        program()
        code = DONE
    except SystemExit as left:
        code = _code_of(left)
    sys.stdout.flush()
    return code


def _sentence(error: BaseException) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, MemoryError):
        return "this needs more memory than there is; ask for less at once, or free some."
    if isinstance(error, RecursionError):
        return "this is nested too deeply to be read; write it flatter."
    said = str(error).replace("\n", " ")  # a name in it may have several lines
    return said or type(error).__name__  # a plug-in may raise one without a word


def system_sentence(error: OSError) -> str:
    """What the system did not let us do, where, and what helps."""
    why = error.strerror or str(error)
    where = error.filename or error.filename2
    place = f" {storable(str(where))}" if where else ""
    helps = {
        errno.ENOSPC: "free some space, or write elsewhere",
        errno.EDQUOT: "free some space, or write elsewhere",
        errno.EROFS: "write elsewhere",
        errno.EACCES: "change its permissions, or name another place",
        errno.EPERM: "change its permissions, or name another place",
        errno.ENOENT: "was it deleted meanwhile? Make it again, or name another place",
    }
    said = helps.get(error.errno or 0, "mend that, or name another place")
    return f"cannot read or write{place} ({why}); {said}."


def ignore_interrupts() -> None:
    """Let no further Ctrl-C disturb the end of the program; it is at its end anyway."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _code_of(left: SystemExit) -> int:
    if left.code is None or isinstance(left.code, int):
        return left.code or DONE
    _say(str(left.code))
    return CELLS_FAILED


def _say(sentence: str) -> None:
    with suppress(OSError):
        click.echo(storable(shortened(sentence, LONGEST_SENTENCE)), err=True)


def _give_up_output() -> None:
    """Leave nothing to print at the end of the interpreter, where nobody could say why not."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, OUTPUT)
        os.close(nowhere)
