"""Sigmoids of energies as weights, each key alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Allowed, Energy, Weights


def sigmoid_weights(energy: Energy, allowed: Allowed | None) -> Weights:
    """Sigmoid of each energy; zero where not allowed."""
    weights = torch.sigmoid(energy)
    return weights if allowed is None else torch.where(allowed, weights, 0.0)


def oracle_sigmoid(
    energy: Float[Tensor, " S"], allowed: list[bool], factor: int
) -> Float[Tensor, " S"]:
    """1 / (1 + factor exp(-e)) of each allowed key, by a loop."""
    zero = torch.zeros_like(energy[0])
    return torch.stack(
        [
            1 / (1 + factor * torch.exp(-e)) if open_ else zero
            for e, open_ in zip(energy, allowed, strict=True)
        ]
    )
