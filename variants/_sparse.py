"""What normalizers share that give far keys a weight of exactly zero.

The library's backward passes are code that torch.compile does not trace: a compiled training step
has a break in its graph there, a forward pass without gradients has none.
"""

from collections.abc import Callable
from typing import Any

import torch

from bench.api.shapes import Allowed, Energy, Weights
from variants._math import at_least_single


def sparse_weights(
    normalize: Callable[[Any], Any], energy: Energy, allowed: Allowed | None, far: float
) -> Weights:
    """Normalize the allowed keys of each row; a row without any gives zeros.

    Args:
        normalize: From energies to weights along the last dimension.
        energy: Energies.
        allowed: Keys that may be read; None for all.
        far: Distance below the best key from which on weights are zero. Hidden keys are put there,
            and not at minus infinity, whose sums and squares are not numbers.
    """
    wide = at_least_single(energy)
    if allowed is None:
        return normalize(wide).to(energy.dtype)
    lowest = torch.finfo(wide.dtype).min
    top = wide.detach().masked_fill(~allowed, lowest).amax(-1, keepdim=True)
    # a row without keys has no best one; zero keeps its gradient finite
    top = torch.where(allowed.any(-1, keepdim=True), top, 0.0)
    shifted = torch.where(allowed, wide - top, -2.0 * far)
    return torch.where(allowed, normalize(shifted), 0.0).to(energy.dtype)
