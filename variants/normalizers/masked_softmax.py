"""Softmax over the keys that a query may see, with its oracle."""

import torch

from bench.api.shapes import Allowed, Energy, Weights


def masked_softmax(energy: Energy, allowed: Allowed | None) -> Weights:
    """Softmax over allowed keys; a row without any gives zeros with finite gradients.

    The finite fill keeps the gradient of a dead row finite, which minus infinity does not; the last
    `where` makes such a row zero and leaves other rows bit-identical.
    """
    if allowed is None:
        return torch.softmax(energy, -1)
    fill = torch.finfo(energy.dtype).min
    weights = torch.softmax(torch.where(allowed, energy, fill), -1)
    return torch.where(allowed, weights, 0.0)


def oracle_softmax(energy: torch.Tensor, allowed: list[bool]) -> torch.Tensor:
    """Softmax of one row by loops; zeros where nothing is allowed."""
    top = max((float(energy[s].detach()) for s in range(len(allowed)) if allowed[s]), default=0.0)
    terms = [
        torch.exp(energy[s] - top) if allowed[s] else torch.zeros_like(energy[0])
        for s in range(len(allowed))
    ]
    total = sum(terms, torch.zeros_like(energy[0]))
    return torch.stack([term / total if any(allowed) else term for term in terms])
