"""How many keys each query may see."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Allowed, Energy
from variants.precision import wide_format


def log_visible_keys(energy: Energy, allowed: Allowed | None) -> Float[Tensor, "#B #Hq #L 1"]:
    """Logarithm of the number of allowed keys of each row, at least one, in the energies' format.

    The number itself may be more than float16 holds.
    """
    wide = wide_format(energy.dtype)
    if allowed is None:
        count = torch.full((1, 1, 1, 1), energy.shape[-1], dtype=wide, device=energy.device)
    else:
        every = allowed.expand(*allowed.shape[:3], energy.shape[-1])
        count = every.sum(-1, keepdim=True).clamp(min=1).to(wide)
    return count.log().to(energy.dtype)
