"""Whether reading a prompt fits the protocol of slots, from counts at two short lengths.

A fused call of attention holds no matrix of weights, whatever a variant declares, and projections
grow with the length alone. So cost is taken as b L + c L^2, through the counts at two lengths. No
clock takes part, as in `affordable.py`.
"""

from dataclasses import replace

import torch

from bench.api.impl import Impl
from bench.api.resolve import VariantSpec
from bench.timing.affordable import CALL_S, ELEMENT_S, FLOP_S, PROBED, beyond, counted
from bench.timing.shape import AttendShape, Rounds
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import build, forward, plain_code

INPUTS = 4
"""Tensors of queries, keys, values and gradients that a block draws, one state a token each."""


def too_large_slot(
    spec: VariantSpec, shape: AttendShape, protocol: Rounds, impl: Impl, dtype: torch.dtype
) -> str | None:
    """Say in a sentence why a slot is not timed at this length, or None.

    Args:
        spec: A fitted variant.
        shape: What shall be timed.
        protocol: Has the limits, 0 for none.
        impl: Code; what is compiled is counted as it was written.
        dtype: Format.
    """
    if shape.length <= 2 * PROBED or not (protocol.most_mb or protocol.most_s):
        return None
    megabytes, seconds = expected(spec, shape, plain_code(impl), dtype)
    excess = beyond(protocol, megabytes, seconds)
    if excess is None:
        return None
    asks, gives = excess
    sizes = f"B={shape.batch},H={shape.heads},L={shape.length},E={shape.width}"
    return (
        f"reading {shape.length} tokens of {shape.batch} rows would {asks}, more than the {gives} "
        f"of this protocol; --shape slot,{sizes} has no such limit."
    )


def expected(
    spec: VariantSpec, shape: AttendShape, impl: Impl, dtype: torch.dtype
) -> tuple[float, float]:
    """Peak memory (MB), with what a block draws, and time (s) of reading a prompt on a core."""
    size = torch.empty((), dtype=dtype).element_size()
    drawn = INPUTS * shape.batch * shape.length * shape.heads * shape.width * size
    # a mechanism that reads chunks or windows grows as it declares from here on
    start = max(PROBED, build(spec, replace(shape, length=1), impl, seed=0).exponents_from)
    once, twice = (_at(spec, shape, n * start, impl, dtype) for n in (1, 2))
    far = shape.length / start
    peak, seconds = (_grown(one, two, far) for one, two in zip(once, twice, strict=True))
    return (drawn + peak) / 1e6, seconds


def _at(
    spec: VariantSpec, shape: AttendShape, length: int, impl: Impl, dtype: torch.dtype
) -> tuple[float, float]:
    """Bytes and seconds at a short length."""
    short = replace(shape, length=length)
    variant = build(spec, short, impl, seed=0).to(dtype=dtype)
    seen = counted(forward(variant, draw_inputs(short, torch.device("cpu"), dtype, 0)))
    seconds = CALL_S * seen.calls + FLOP_S * seen.flops + ELEMENT_S * seen.elements
    return float(seen.peak_bytes), seconds


def _grown(once: float, twice: float, times: float) -> float:
    """Value of b x + c x^2 at `times`, through those at 1 and 2; c and b are not below 0.

    >>> _grown(3.0, 10.0, 10.0)  # x + 2 x^2
    210.0
    """
    square = min(max(0.0, (twice - 2 * once) / 2), once)
    return (once - square) * times + square * times**2
