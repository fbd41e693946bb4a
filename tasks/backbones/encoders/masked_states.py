"""States without their padding."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def kept(x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"] | None) -> Float[Tensor, "B S D"]:
    """Real positions as they are, padded ones zero."""
    return x if mask is None else torch.where(mask.unsqueeze(-1), x, 0.0)


def mean(x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"] | None) -> Float[Tensor, "B D"]:
    """Mean of states that are zero where padded."""
    if mask is None:
        return x.mean(1)
    return x.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
