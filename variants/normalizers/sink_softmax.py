"""Softmax with one more logit, whose share of the weight goes nowhere."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.shapes import Allowed, Energy, Weights


def sink_softmax(
    energy: Energy, allowed: Allowed | None, sink: Float[Tensor, "#Hq 1 1"]
) -> Weights:
    """exp(e) over exp(sink) plus the sum over allowed keys; zeros where nothing is allowed."""
    if allowed is not None:
        energy = torch.where(allowed, energy, torch.finfo(energy.dtype).min)
    column = sink.to(energy.dtype).expand(*energy.shape[:3], 1)
    weights = torch.softmax(torch.cat((energy, column), -1), -1)[..., :-1]
    return weights if allowed is None else torch.where(allowed, weights, 0.0)


def oracle_sink_softmax(
    energy: Float[Tensor, " S"], allowed: list[bool], sink: Float[Tensor, ""]
) -> Float[Tensor, " S"]:
    """One row by loops, relative to the largest of the energies and the sink."""
    seen = [float(e.detach()) for e, open_ in zip(energy, allowed, strict=True) if open_]
    top = max([float(sink.detach()), *seen])
    zero = torch.zeros_like(energy[0])
    terms = [
        torch.exp(e - top) if open_ else zero for e, open_ in zip(energy, allowed, strict=True)
    ]
    total = sum(terms, torch.exp(sink - top))
    return torch.stack([term / total for term in terms])
