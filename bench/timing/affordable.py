"""Whether a call at a long length fits a protocol, from counts at a short one and never the clock.

A clock would ask other calls on another day. Counts grow as the variant declares, which its
certificate holds it to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.api.variant import Variant
from bench.timing.flops import count_operations
from bench.timing.memory import TensorBytes
from bench.timing.reason import Reason, attempt
from bench.timing.shape import AttendShape, Rounds, Workload
from bench.timing.timed_inputs import Inputs, draw_inputs
from bench.timing.timer import Work
from bench.timing.workloads import MAKERS

PROBED = 256
"""Length at which calls are counted; up to twice as long ones are always timed."""
FULL = 2.0
"""Power of a matrix of weights, which whoever wants weights has to hold."""
CALL_S, FLOP_S, ELEMENT_S = 4e-6, 1 / 40e9, 4e-10
"""Time of one operation of torch, of a FLOP and of an element that is written, on one core of the
reference machine (s). They say what is asked, and no number that is printed."""


@dataclass(frozen=True)
class Counted:
    """What a call does."""

    calls: int
    """Operations of torch, however large."""
    flops: int
    elements: int
    peak_bytes: int

    def seconds(self, times: float, exponent: float) -> float:
        """Expected time at a length that is so many times as long (s).

        A loop over queries has as many more operations as there are queries, each of them larger.
        """
        calls = self.calls * times ** max(0.0, exponent - 1)
        work = FLOP_S * self.flops + ELEMENT_S * self.elements
        return CALL_S * calls + work * times**exponent

    def megabytes(self, times: float, exponent: float) -> float:
        """Expected peak at a length that is so many times as long (MB)."""
        return self.peak_bytes * times**exponent / 1e6


class _Calls(TorchDispatchMode):
    """Counts operations and the elements that they write."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.elements = 0

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Run the operation and count it."""
        results = func(*args, **(kwargs or {}))
        self.calls += 1
        if not func.is_view:
            self.elements += sum(
                leaf.numel() for leaf in tree_leaves(results) if isinstance(leaf, Tensor)
            )
        return results


def too_large(
    variant: Variant,
    shape: AttendShape,
    protocol: Rounds,
    dtype: torch.dtype,
    *,
    among: Sequence[Workload],
) -> dict[str, Reason]:
    """Workloads that the protocol gives neither the time nor the memory for, each with why.

    Args:
        variant: Built, on the processor; not compiled, or torch would see no operation of it.
        shape: What shall be timed.
        protocol: Has the limits.
        dtype: Format.
        among: Workloads that are asked.
    """
    start = max(PROBED, variant.exponents_from)
    if shape.length <= 2 * start or not (protocol.most_mb or protocol.most_s):
        return {}
    short = draw_inputs(replace(shape, length=start), torch.device("cpu"), dtype, 0)
    found: dict[str, Reason] = {}
    fills_cache = shape.regime == "causal" and "decode_step" in among
    for workload in ("forward", *among) if fills_cache and "forward" not in among else among:
        if workload == "decode_step":
            # one query costs little, but under self-attention a forward call fills its cache
            if shape.regime == "causal" and "forward" in found:
                found[workload] = found["forward"]
            continue
        if "forward" in found:
            found[workload] = found["forward"]  # of which it does all, and more
            continue
        seen = attempt(partial(_counted, workload, variant, short))
        # whatever the call raises, it will raise again where it is told
        if isinstance(seen, Reason):
            continue
        said = _refusal(variant, seen, workload, shape, protocol, start)
        if said is not None:
            found[workload] = Reason("refused", said)
    return {workload: why for workload, why in found.items() if workload in among}


def _counted(workload: Workload, variant: Variant, short: Inputs) -> Counted:
    return counted(MAKERS[workload](variant, short))


def _refusal(
    variant: Variant,
    seen: Counted,
    workload: Workload,
    shape: AttendShape,
    protocol: Rounds,
    start: int,
) -> str | None:
    least = FULL if workload == "forward_weights" else 0.0
    alone = 1.0 if shape.regime == "pool" else 0.0
    times = shape.length / start
    seconds = seen.seconds(times, max(least, variant.time_exponent) - alone)
    megabytes = seen.megabytes(times, max(least, variant.memory_exponent) - alone)
    excess = beyond(protocol, megabytes, seconds)
    if excess is None:
        return None
    asks, gives = excess
    what = workload.replace("_", " and ") if workload == "forward_backward" else workload
    return (
        f"{what.replace('_', ' ')} at length {shape.length} would {asks} by its declared growth, "
        f"more than the {gives} of this protocol; --shape has no such limit."
    )


def beyond(protocol: Rounds, megabytes: float, seconds: float) -> tuple[str, str] | None:
    """What a call would do and what it may at most, if it is more than the protocol allows."""
    if protocol.most_mb and megabytes > protocol.most_mb:
        return f"hold about {megabytes:.0f} MB", f"{protocol.most_mb:g} MB"
    if protocol.most_s and seconds > protocol.most_s:
        return f"take about {seconds:.2g} s", f"{protocol.most_s:g} s"
    return None


def counted(work: Work) -> Counted:
    """Call once and count."""
    with TensorBytes() as memory, _Calls() as seen:
        flops = count_operations(work).matmul_flops
    return Counted(seen.calls, flops, seen.elements, memory.peak)
