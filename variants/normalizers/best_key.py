"""The best key of a row: what hard normalizers select."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Allowed, Energy, Weights


def one_hot_best(energy: Energy, allowed: Allowed | None) -> Weights:
    """One at the allowed key of the highest energy; zeros on rows without any. No gradient."""
    energy = energy.detach()
    if allowed is not None:
        energy = energy.masked_fill(~allowed, float("-inf"))
    best = torch.zeros_like(energy).scatter(-1, energy.argmax(-1, keepdim=True), 1.0)
    return best if allowed is None else torch.where(allowed, best, 0.0)


def oracle_best(energy: Float[Tensor, " S"], allowed: list[bool]) -> Float[Tensor, " S"]:
    """`one_hot_best` of one row by a loop."""
    best = -1
    for s, open_ in enumerate(allowed):
        if open_ and (best < 0 or float(energy[s].detach()) > float(energy[best].detach())):
            best = s
    found = torch.zeros_like(energy.detach())
    if best >= 0:
        found[best] = 1.0
    return found
