"""What a device does at most: matrix products, copies and special functions.

Times of attention are read against these, measured in the same run, and not against a data sheet.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from bench.timing.reason import Reason, attempt
from bench.timing.timer import Timer, Work, timer_for

CHAIN = 64
"""Special functions in a row on one element, so that memory traffic hides behind them."""


@dataclass(frozen=True)
class CeilingSizes:
    """Sizes that fill a device."""

    matrix: int = 8192
    """Rows and columns of the factors of a matrix product."""
    elements: int = 2**28
    """Elements that are copied (bfloat16), and a sixteenth of them for special functions."""
    samples: int = 20
    """Calls that are timed; the median counts."""


def measure_ceilings(
    device: torch.device, sizes: CeilingSizes, *, backend: str = "inductor"
) -> dict[str, float | Reason]:
    """Measure every ceiling, on normal numbers (zeros would flatter hardware that saves power).

    Args:
        device: What is measured.
        sizes: How much work a call is.
        backend: Of `torch.compile`, which fuses the chain of special functions.

    Returns:
        FLOP/s (a multiply-add is two), bytes/s (read and written) and functions/s by name, or the
        reason why there is no such number.
    """
    timer = timer_for(device, "wall")

    def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(*shape, device=device).to(dtype)

    def product(dtype: torch.dtype) -> float:
        one, two = (normal(sizes.matrix, sizes.matrix, dtype=dtype) for _ in range(2))
        return 2 * sizes.matrix**3 / _seconds(timer, lambda: one @ two, sizes.samples)

    def copy() -> float:
        source = normal(sizes.elements, dtype=torch.bfloat16)
        target = torch.empty_like(source)
        moved = 2 * source.numel() * source.element_size()
        return moved / _seconds(timer, lambda: target.copy_(source), sizes.samples)

    def special(function: Callable[[Tensor], Tensor]) -> float:
        x = normal(max(1, sizes.elements // 16))

        def chain(value: Tensor) -> Tensor:
            for _ in range(CHAIN):
                value = function(value)
            return value

        compiled = torch.compile(chain, backend=backend)
        return CHAIN * x.numel() / _seconds(timer, lambda: compiled(x), sizes.samples)

    wanted: Mapping[str, Callable[[], float]] = {
        "matmul_bfloat16_flops_per_s": lambda: product(torch.bfloat16),
        "matmul_float32_flops_per_s": lambda: product(torch.float32),
        "copy_bytes_per_s": copy,
        "tanh_float32_per_s": lambda: special(torch.tanh),
        "exp_float32_per_s": lambda: special(lambda x: torch.exp(-x)),
    }
    with torch.no_grad():
        return {name: attempt(measure) for name, measure in wanted.items()}


def _seconds(timer: Timer, work: Work, samples: int) -> float:
    timer.samples(work, 3)  # whatever is compiled or chosen at a first call has been by now
    return median(timer.samples(work, samples)) / 1e3
