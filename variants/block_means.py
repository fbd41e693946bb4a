"""Means of neighboring vectors, which stand for their block."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional


def block_means(
    x: Float[Tensor, "B H S E"], real: Bool[Tensor, "B S"], size: int
) -> tuple[Float[Tensor, "B H N E"], Int[Tensor, "B N"]]:
    """Mean of the real vectors of each block, and how many there are; zero where there is none."""
    missing = -x.shape[2] % size
    kept = functional.pad(torch.where(real[:, None, :, None], x, 0.0), (0, 0, 0, missing))
    count = functional.pad(real, (0, missing)).unflatten(1, (-1, size)).sum(2)
    return kept.unflatten(2, (-1, size)).sum(3) / count.clamp(min=1)[:, None, :, None], count
