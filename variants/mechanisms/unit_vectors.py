"""Vectors of length one, for keys of delta rules."""

import torch
from jaxtyping import Float
from torch import Tensor

EPS = 1e-6
"""Added to the square of the length, so that a vector of zeros stays one."""


def unit(x: Float[Tensor, "B H n E"]) -> Float[Tensor, "B H n E"]:
    """Each vector divided by its length."""
    return x * (x.square().sum(-1, keepdim=True) + EPS).rsqrt()


def oracle_unit(x: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
    """`unit` for one vector, unit by unit."""
    square = x.new_zeros(())
    for number in x:
        square = square + number * number
    return torch.stack([number / torch.sqrt(square + EPS) for number in x])
