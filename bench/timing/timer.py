"""How long one call takes, on a CPU and on a GPU.

On a CPU a sample is the time between two readings of a clock that the protocol names. On a GPU it
is device time between two events. Launch gaps stay out because the stream is first made to sleep
until everything is queued; a call of more than about a thousand kernels fills the launch queue
meanwhile and is timed with its gaps.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch

Clock = Callable[[], float]
"""Returns seconds; only differences matter."""
Work = Callable[[], object]
"""One call of what is timed."""

CLOCKS: Mapping[str, Clock] = {"cpu": time.process_time, "wall": time.perf_counter}
"""Clocks by their name in a protocol."""

SLEEP_CYCLES_PER_S = 2.0e9
"""At least the clock rate of GPUs of servers. Cards that run at 3 GHz sleep two thirds as long, and
that is still as long as queuing took, because half more than it is asked for."""
LONGEST_SLEEP_S = 0.02


class Timer(Protocol):
    """Takes samples of the time of a call."""

    def samples(self, work: Work, count: int) -> list[float]:
        """Call `count` times and return the times (ms)."""
        ...


@contextmanager
def without_collection() -> Iterator[None]:
    """Samples are taken inside, and garbage is collected between visits."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class CpuTimer:
    """Samples from an injected clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def samples(self, work: Work, count: int) -> list[float]:
        """Time each call by itself."""
        clock, found = self.clock, []
        with without_collection():
            for _ in range(count):
                begin = clock()
                work()
                found.append((clock() - begin) * 1e3)
        return found


class CudaTimer:
    """Samples from event pairs behind a sleeping kernel.

    Only a warm cache is timed. Cold needs input sets of three times the L2 cache, rotated from
    call to call: a list of works in the place of one.
    """

    def __init__(self, clock: Clock, cuda: Any = torch.cuda) -> None:
        self.clock = clock
        self.cuda = cuda

    def samples(self, work: Work, count: int) -> list[float]:
        """Queue sleep, event, call, event for every sample, then wait for all of them."""
        self.cuda.synchronize()
        begin = self.clock()
        work()
        self.cuda.synchronize()
        ahead = min(1.5 * (self.clock() - begin), LONGEST_SLEEP_S)
        pairs = []
        with without_collection():
            for _ in range(count):
                first, last = (self.cuda.Event(enable_timing=True) for _ in range(2))
                self.cuda._sleep(int(ahead * SLEEP_CYCLES_PER_S))
                first.record()
                work()
                last.record()
                pairs.append((first, last))
        self.cuda.synchronize()
        return [float(first.elapsed_time(last)) for first, last in pairs]


def timer_for(device: torch.device, name: str, clock: Clock | None = None) -> Timer:
    """The timer of a device.

    Args:
        device: What is timed.
        name: Of the CPU's clock in the protocol.
        clock: In its place. On a GPU any clock only decides how far ahead work is queued, and
            that needs the time which passes.
    """
    if device.type == "cuda":
        return CudaTimer(clock or CLOCKS["wall"])
    return CpuTimer(clock or CLOCKS[name])
