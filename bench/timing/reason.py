"""Why a variant or one of its calls has no rows: the status and the sentence of its record."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch

from bench.api.errors import Refused
from bench.api.missing_method import missing_method
from bench.api.plain_text import message_of, named_message_of
from bench.timing.memory import release_memory
from results.row import Status

T = TypeVar("T")


class Reason(NamedTuple):
    """What stands in a record in the place of rows."""

    status: Status
    detail: str
    """One sentence."""
    environmental: bool = False
    """Whether the cause lies outside the code, so that asking later may end otherwise."""


def reason_for(error: Exception) -> Reason:
    """Turn what a variant raised into a reason."""
    text = message_of(error)
    if isinstance(error, Refused):
        return Reason("refused", text)
    if ran_out_of_memory(error):
        return Reason("out_of_memory", f"timing ran out of memory: {text}")
    missing = missing_method(error)
    return Reason("failed", missing or named_message_of(error, " while timing"))


def attempt(call: Callable[[], T]) -> T | Reason:
    """What a call gives, or why it gave nothing.

    After a call that ran out of memory everything that it filled is free for the next one.
    """
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        reason = reason_for(error)
    # the error has gone by now, and with it the frames that held the tensors of the call
    if reason.status == "out_of_memory":
        release_memory()
    return reason


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; torch has no class for it on a CPU."""
    kinds = (MemoryError, torch.OutOfMemoryError)
    return isinstance(error, kinds) or "can't allocate memory" in message_of(error)
