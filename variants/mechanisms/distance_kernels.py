"""Kernels of kernel regression: how weight falls with distance."""

from typing import Literal

import torch
from torch import Tensor

from bench.api.shapes import Weights

Kernel = Literal["gaussian", "laplace", "boxcar", "epanechnikov", "triangular", "constant"]
KERNELS: tuple[Kernel, ...] = (
    "gaussian",
    "laplace",
    "boxcar",
    "epanechnikov",
    "triangular",
    "constant",
)
COMPACT = frozenset({"boxcar", "epanechnikov", "triangular"})
"""Kernels that are zero from distance one on."""
FLAT = frozenset({"boxcar", "constant"})
"""Kernels without a gradient, so that their bandwidth cannot be learned."""


def compact_kernel(kernel: Kernel, distance: Weights) -> Weights:
    """K(u) of a kernel with an edge, not normalized."""
    if kernel == "boxcar":
        return (distance <= 1).to(distance.dtype)
    power = 2 if kernel == "epanechnikov" else 1
    return (1 - distance**power).clamp(min=0)


def oracle_kernel(kernel: Kernel, u: Tensor, least: float) -> Tensor:
    """K(u); of kernels without an edge K(u) / K(least), since far tails are zero as numbers."""
    inside = float(u.detach()) <= 1
    if kernel == "gaussian":
        return torch.exp((least * least - u * u) / 2)
    if kernel == "laplace":
        return torch.exp(least - u)
    if kernel == "epanechnikov":
        return 1 - u * u if inside else torch.zeros_like(u)
    if kernel == "triangular":
        return 1 - u if inside else torch.zeros_like(u)
    return torch.ones_like(u) if inside or kernel == "constant" else torch.zeros_like(u)
