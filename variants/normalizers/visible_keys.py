"""How many keys each query may see."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Allowed, Energy


def visible_keys(energy: Energy, allowed: Allowed | None) -> Float[Tensor, "#B #Hq #L 1"]:
    """Number of allowed keys of each row, at least one, in the energies' number format."""
    if allowed is None:
        return torch.full((1, 1, 1, 1), energy.shape[-1], dtype=energy.dtype, device=energy.device)
    return (
        allowed.expand(*allowed.shape[:3], energy.shape[-1])
        .sum(-1, keepdim=True)
        .clamp(min=1)
        .to(energy.dtype)
    )
