"""The same attention as PyTorch runs it, as plain operations, and compiled: in the same rounds."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from bench.api.errors import Refused
from bench.api.impl import Impl
from bench.api.resolve import resolve
from bench.api.variant import Variant
from bench.conformance.compare import gap
from bench.timing.reason import Reason, attempt
from bench.timing.rounds import TimedVariant, run_rounds, warm_up
from bench.timing.shape import AttendShape, parse_rounds
from bench.timing.timed_inputs import Inputs, draw_inputs, fit_inputs
from bench.timing.timer import timer_for
from bench.timing.workloads import answer, build, compile_attend, make_works

Code = Literal["eager", "auto", "compiled"]
"""Plain torch, the best code there is (fused where a score is a dot product), `torch.compile`."""
CODES: tuple[Code, ...] = get_args(Code)


@dataclass(frozen=True, kw_only=True)
class CodeTime:
    """One workload of one variant under one code."""

    variant: str
    code: Code
    workload: str
    median_ms: float = 0.0
    """Median over rounds; 0 where there is none."""
    rounds: int = 0
    first_call_s: float = 0.0
    """Wall time of the first forward call, compilation included (s)."""
    off: float | None = None
    """Largest difference from plain torch, in units of one plus the largest output; None where
    there is no output of one of the two."""
    status: str = "ok"
    detail: str = ""


class Ready(NamedTuple):
    """A variant under one code whose workloads have been called once."""

    variant: str
    code: Code
    timed: TimedVariant
    first_call_s: float
    off: float | None

    def times(self) -> list[CodeTime]:
        """What the rounds have found of each workload, and why some have nothing."""
        lost = [
            _without(self.variant, self.code, workload, why)
            for workload, why in self.timed.lost.items()
        ]
        return lost + [
            CodeTime(
                variant=self.variant,
                code=self.code,
                workload=workload,
                median_ms=median(visits.values()),
                rounds=len(visits),
                first_call_s=self.first_call_s,
                off=self.off,
            )
            for workload, visits in self.timed.visits.items()
        ]


def time_codes(
    variants: Sequence[str],
    shape: AttendShape,
    dtype: torch.dtype,
    device: torch.device,
    rounds: str,
    *,
    backend: str = "inductor",
) -> list[CodeTime]:
    """Time each variant under every code, all of them in the same random rounds.

    Args:
        variants: Selectors.
        shape: Sizes and regime; a variant that cannot stand there has a refusal.
        dtype: Format of parameters and inputs.
        device: What is timed.
        rounds: Timing protocol, `rounds[...]`.
        backend: Of `torch.compile`.
    """
    protocol, inputs = parse_rounds(rounds), draw_inputs(shape, device, dtype, 0)
    ready: list[Ready] = []
    found: list[CodeTime] = []
    for name in variants:
        plain: Tensor | None = None
        for code in CODES:
            made = attempt(partial(_made, name, code, shape, inputs, backend))
            if isinstance(made, Reason):
                found.append(_without(name, code, "forward", made))
                continue
            variant, output, seconds = made
            plain = output if code == "eager" else plain
            works, lost = make_works(resolve(name), variant, inputs, protocol.asked)
            found += [_without(name, code, workload, why) for workload, why in lost.items()]
            timed = TimedVariant(f"{name} {code}", works)
            off = None if plain is None else gap(output.float(), plain.float())
            ready.append(Ready(name, code, timed, seconds, off))
    timer, together = timer_for(device, protocol.clock), [one.timed for one in ready]
    warm_up(together, protocol, timer)
    run_rounds(together, protocol, timer, seed=0)
    for one in ready:
        found += one.times()
    return found


def _made(
    name: str, code: Code, shape: AttendShape, inputs: Inputs, backend: str
) -> tuple[Variant, Tensor, float]:
    impl: Impl = "auto" if code == "auto" else "eager"
    variant = build(resolve(name), shape, impl, seed=0)
    variant.to(inputs.query.device, inputs.query.dtype)
    if code == "compiled":
        compile_attend(variant, backend)
    inputs = fit_inputs(inputs, variant.dims)
    begin = time.perf_counter()
    with torch.no_grad():
        output = answer(variant, inputs.query, inputs.source).output
    if not output.isfinite().all():
        raise Refused(f"{name} gives values that are not finite at {shape.show()}.")
    return variant, output, time.perf_counter() - begin


def _without(name: str, code: Code, workload: str, why: Reason) -> CodeTime:
    return CodeTime(
        variant=name, code=code, workload=workload, status=why.status, detail=why.detail
    )
