"""The inverse of softplus, for parameters that must start at a given positive value."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def inverse_softplus(x: float) -> float:
    """The argument at which softplus is x; x must be positive."""
    return x + math.log(-math.expm1(-x))


def inverse_softplus_of_each(x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """`inverse_softplus` of every number of a tensor."""
    return x + torch.log(-torch.expm1(-x))
