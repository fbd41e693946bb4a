"""Why a variant or one of its calls has no rows: the status and the sentence of its record."""

import errno
import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch

from bench.api.errors import Refused
from bench.api.missing_method import missing_method
from bench.api.plain_text import message_of, named_message_of
from bench.timing.memory import release_memory
from results.row import Status

T = TypeVar("T")

ENVIRONMENTAL = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ESTALE,
}
"""Errors of the operating system that the code of a cell does not cause."""
OVERFLOW = "Storage size calculation overflowed"
"""What torch says of a tensor with more numbers than an address can count."""
_NO_MEMORY = re.compile(r"can't allocate memory|CUDA.*out of memory|STATUS_ALLOC_FAILED")
"""What the allocator of a processor says, and a GPU where another than torch's finds no room: for a
context, a kernel that is loaded, or a handle of a library."""
_ASKED = re.compile(r"to allocate ([\d.]+) (bytes|[KMGTPE]iB)")
_BYTES = {"bytes": 1} | {f"{letter}iB": 2 ** (10 * n) for n, letter in enumerate("KMGTPE", 1)}


class Reason(NamedTuple):
    """What stands in a record in the place of rows."""

    status: Status
    detail: str
    """One sentence."""
    environmental: bool = False
    """Whether the cause lies outside the code, so that asking later may end otherwise."""


def reason_for(error: Exception, doing: str = "timing") -> Reason:
    """Turn what a variant raised into a reason.

    Args:
        error: What was raised.
        doing: What was being done.
    """
    text = message_of(error)
    if isinstance(error, Refused):
        return Reason("refused", text)
    if ran_out_of_memory(error):
        return Reason("out_of_memory", f"{doing} ran out of memory: {memory_asked(text)}")
    missing = missing_method(error)
    told = missing or named_message_of(error, f" while {doing}")
    return Reason("failed", told, environmental=met_the_system(error))


def attempt(call: Callable[[], T], doing: str = "timing") -> T | Reason:
    """What a call gives, or why it gave nothing.

    After a call that ran out of memory everything that it filled is free for the next one.

    Args:
        call: What may raise.
        doing: What the sentence says was being done.
    """
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        reason = reason_for(error, doing)
    # the error has gone by now, and with it the frames that held the tensors of the call
    if reason.status == "out_of_memory":
        release_memory()
    return reason


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; torch has a class for its allocator of a GPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = message_of(error)
    return OVERFLOW in text or _NO_MEMORY.search(text) is not None


def met_the_system(error: BaseException) -> bool:
    """Whether an error tells of this machine and not of code, as that of a full disk does."""
    return isinstance(error, OSError) and error.errno in ENVIRONMENTAL


def memory_asked(text: str) -> str:
    """How much memory was asked for, without the words of an allocator; the text if it has none.

    >>> memory_asked("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
    ...     "allocate memory: you tried to allocate 25600000000 bytes. Error code 12")
    '25.6 GB were asked for at once'
    """
    if OVERFLOW in text:
        return "more was asked for at once than any machine has"
    found = _ASKED.search(text)
    if found is None:
        return text
    asked = float(found[1]) * _BYTES[found[2]] / 1e9
    shown = f"{asked:,.1f}" if asked >= 1 else f"{asked:.2g}"
    return f"{shown} GB were asked for at once"
