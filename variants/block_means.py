"""Means of neighboring vectors, which stand for their block."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional


def block_means(
    x: Float[Tensor, "B H S E"], real: Bool[Tensor, "B S"] | None, size: int
) -> tuple[Float[Tensor, "B H N E"], Int[Tensor, "B N"]]:
    """Mean of the real vectors of each block, and how many there are; zero where there is none.

    Args:
        x: The vectors, which are not copied where all are real.
        real: Which of them are real; None for all.
        size: Vectors of a block; the last one may have fewer.
    """
    if real is None:
        rows, _, length, _ = x.shape
        whole = length - length % size
        mean = x[:, :, :whole].unflatten(2, (-1, size)).mean(3)
        count = torch.full((rows, -(-length // size)), size, device=x.device)
        if whole < length:
            mean = torch.cat((mean, x[:, :, whole:].mean(2, keepdim=True)), 2)
            count[:, -1] = length - whole
        return mean, count
    missing = -x.shape[2] % size
    kept = functional.pad(torch.where(real[:, None, :, None], x, 0.0), (0, 0, 0, missing))
    count = functional.pad(real, (0, missing)).unflatten(1, (-1, size)).sum(2)
    return kept.unflatten(2, (-1, size)).sum(3) / count.clamp(min=1)[:, None, :, None], count
