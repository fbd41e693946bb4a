"""Where code runs beside float64 on the processor, and how near its answers must come to that."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api.impl import Impl
from bench.api.resolve import VariantSpec
from bench.conformance.compare import expect, gap, near_but_for_jumps
from bench.conformance.place import gives
from bench.timing.shape import AttendShape, Rounds

MOST = {torch.float32: 64, torch.float16: 64, torch.bfloat16: 16}
"""Roundings of which a device may lose no more, in units of the format's epsilon. They add up in
another order there, so the processor may lose less (`ROUNDINGS`)."""
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
    rounds: Rounds | None = None
    """Timing protocol of attention beneath its heads, which refuses what is too large for it; None
    where nothing is too large."""

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

    def at(self, shape: AttendShape, impl: Impl) -> str:
        """The check of one timed shape, which that of another one neither hides nor replaces.

        >>> RunsOn("cuda", "bfloat16").at(AttendShape(regime="cross", place="slot"), "auto")
        'timed_shape_on_cuda_bfloat16_at_slot_cross_B2_H2_L256_E32'
        """
        place = "slot_" if shape.place == "slot" else ""
        sizes = f"B{shape.batch}_H{shape.heads}_L{shape.length}_E{shape.width}"
        return f"{self.named('timed_shape', impl)}_at_{place}{shape.regime}_{sizes}"


def compared_on(
    device: str,
    dtype: str,
    shapes: Iterable[AttendShape],
    impl: str = "auto",
    rounds: Rounds | None = None,
) -> RunsOn | None:
    """Where a certificate compares with float64; None where the suite in float64 says it all.

    Args:
        device: Kind of device.
        dtype: Name of the format.
        shapes: Shapes that were asked for.
        impl: Code to certify; the suite knows nothing of compiled code.
        rounds: Timing protocol of attention beneath its heads; None where nothing is too large.
    """
    asked = tuple(shapes)
    if device == "cpu" and dtype in CERTIFIED and not asked and impl != "compiled":
        return None
    return RunsOn(device, dtype, asked, rounds)


def most_lost(
    spec: VariantSpec, dtype: torch.dtype, roundings: Mapping[torch.dtype, int] = MOST
) -> float:
    """How far an answer to a question of the suite may be off in a format, wherever it runs.

    A choice of keys that jumps is as good as another one, however far its answer lies.
    """
    if "jumps" in gives(spec):
        return math.inf
    return roundings.get(dtype, MARGIN) * torch.finfo(dtype).eps


def expect_as_near(
    found: Tensor,
    wanted: Tensor,
    usual: Tensor,
    spec: VariantSpec,
    on: RunsOn,
    where: str,
    most: float = math.inf,
) -> None:
    """Fail unless an output is of its kind, finite, and as near as the processor comes to it.

    What the processor itself loses counts up to `most`, or a mistake that it makes, too, would
    allow itself.
    """
    expect(found.device.type == torch.device(on.device).type, f"{where}: {found.device} answers")
    expect(found.dtype == on.format, f"{where}: {on.dtype} in, {found.dtype} out")
    mine = found.detach().cpu().double()
    expect(mine.isfinite().all(), f"{where}: not finite")
    expect(usual.isfinite().all(), f"{where}: the processor itself gives no finite output")
    lost = MARGIN * max(torch.finfo(on.format).eps, gap(usual, wanted))
    off, allowed = gap(mine, wanted), min(lost, most)
    near = near_but_for_jumps(mine, wanted, allowed, gives(spec))
    expect(near, f"{where}: off by {off:.2g}, more than {allowed:.2g}")
