"""The longest sequence that a device holds: doubled until memory or patience ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch

from bench.api.impl import Impl
from bench.api.resolve import resolve
from bench.timing.reason import Reason, attempt
from bench.timing.shape import AttendShape
from bench.timing.timed_inputs import draw_inputs
from bench.timing.timer import Clock
from bench.timing.workloads import MAKERS, build

Pass = Literal["forward", "forward_backward"]


@dataclass(frozen=True, kw_only=True)
class Largest:
    """How far a variant came."""

    variant: str
    workload: Pass
    length: int
    """The longest one that fitted (vectors); 0 where none did."""
    ended: str
    """Why the next one was not reached: a status, `limit` or `time`."""
    detail: str = ""


def largest_length(
    variant: str,
    workload: Pass,
    shape: AttendShape,
    device: torch.device,
    dtype: torch.dtype,
    *,
    limit: int,
    seconds: float,
    impl: Impl = "auto",
    clock: Clock = time.perf_counter,
) -> Largest:
    """Double the length of a shape until a call fails, then try half of the way back.

    Args:
        variant: Selector.
        workload: What is called.
        shape: Everything but the length; its own length is the first one.
        device: What holds it.
        dtype: Format.
        limit: Longest length that is tried.
        seconds: Time for the whole search (s). A call of twice the length may take four times as
            long, so none is begun that would not end in time.
        impl: Code.
        clock: Seconds; only differences matter.
    """

    def call(length: int) -> float | Reason:
        return attempt(lambda: _took(variant, workload, replace(shape, length=length), impl))

    def _took(variant: str, workload: Pass, asked: AttendShape, impl: Impl) -> float:
        begin = clock()
        module = build(resolve(variant), asked, impl, seed=0).to(device, dtype)
        inputs = draw_inputs(asked, device, dtype, 0, same_everywhere=False)
        MAKERS[workload](module, inputs)()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return clock() - begin

    return _search(variant, workload, shape.length, call, limit, seconds)


def _search(
    variant: str,
    workload: Pass,
    first: int,
    call: Callable[[int], float | Reason],
    limit: int,
    seconds: float,
) -> Largest:
    """The doubling itself."""
    fitted, length, spent = 0, first, 0.0
    while length <= limit:
        found = call(length)
        if isinstance(found, Reason):
            middle = fitted + fitted // 2
            if found.status == "out_of_memory" and middle > fitted:
                between = call(middle)
                fitted = fitted if isinstance(between, Reason) else middle
            return Largest(
                variant=variant,
                workload=workload,
                length=fitted,
                ended=found.status,
                detail=found.detail,
            )
        fitted, spent = length, spent + found
        if spent + 4 * found > seconds:
            return Largest(variant=variant, workload=workload, length=fitted, ended="time")
        length *= 2
    return Largest(variant=variant, workload=workload, length=fitted, ended="limit")
