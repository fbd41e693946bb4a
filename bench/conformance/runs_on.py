"""Where code runs beside float64 on the processor, and how near its answers must come to that."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api.impl import Impl
from bench.api.resolve import VariantSpec
from bench.conformance.compare import expect, gap, near_but_for_jumps
from bench.conformance.place import gives
from bench.timing.shape import AttendShape

MARGIN = 8
"""How much more than the processor a device may lose, for it adds up in another order."""
CERTIFIED = ("float32", "float64")
"""Formats that the suite itself covers on the processor."""


@dataclass(frozen=True)
class RunsOn:
    """Where a certificate holds, beside the implementation."""

    device: str = "cpu"
    dtype: str = "float32"
    shapes: tuple[AttendShape, ...] = ()
    """Shapes that will be timed."""

    @property
    def format(self) -> torch.dtype:
        """The format, for torch."""
        found = getattr(torch, self.dtype)
        assert isinstance(found, torch.dtype), "checked where it was asked for"
        return found

    def named(self, check: str, impl: Impl) -> str:
        """A check in a certificate: what is compared, and on what.

        >>> RunsOn("cuda", "bfloat16").named("answers", "sdpa")
        'answers_on_cuda_bfloat16_sdpa'
        """
        code = () if impl == "auto" else (impl,)
        return "_".join((check, "on", self.device, self.dtype, *code))


def compared_on(
    device: str, dtype: str, shapes: Iterable[AttendShape], impl: str = "auto"
) -> RunsOn | None:
    """Where a certificate compares with float64; None where the suite in float64 says it all.

    Args:
        device: Kind of device.
        dtype: Name of the format.
        shapes: Shapes that were asked for.
        impl: Code to certify; the suite knows nothing of compiled code.
    """
    asked = tuple(shapes)
    if device == "cpu" and dtype in CERTIFIED and not asked and impl != "compiled":
        return None
    return RunsOn(device, dtype, asked)


def expect_as_near(
    found: Tensor, wanted: Tensor, usual: Tensor, spec: VariantSpec, on: RunsOn, where: str
) -> None:
    """Fail unless an output is of its kind, finite, and as near as the processor comes to it."""
    expect(found.device.type == torch.device(on.device).type, f"{where}: {found.device} answers")
    expect(found.dtype == on.format, f"{where}: {on.dtype} in, {found.dtype} out")
    mine = found.detach().cpu().double()
    expect(mine.isfinite().all(), f"{where}: not finite")
    expect(usual.isfinite().all(), f"{where}: the processor itself gives no finite output")
    allowed = MARGIN * max(torch.finfo(on.format).eps, gap(usual, wanted))
    off = gap(mine, wanted)
    near = near_but_for_jumps(mine, wanted, allowed, gives(spec))
    expect(near, f"{where}: off by {off:.2g}, more than {allowed:.2g}")
