"""Mathematics that several variants use unchanged."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.component import expand_heads
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


def weighted_values(
    weights: Weights, value: Float[Tensor, "B Hk S Ev"]
) -> Float[Tensor, "B Hq L Ev"]:
    """Values, each times its weight, added up."""
    heads = weights.shape[1]
    value = expand_heads(value, heads)
    if heads == 1:
        # three dimensions go straight to one batched product, without being reshaped
        return (weights.squeeze(1) @ value.squeeze(1)).unsqueeze(1)
    return weights @ value


def per_head_linear(
    x: Float[Tensor, "B #H *n E"], weight: Float[Tensor, "#H E W"]
) -> Float[Tensor, "B H *n W"]:
    """Multiply each head by its own matrix, or all by the one there is.

    One head is one plain product over all rows; broadcasting would make a batch of small ones.
    """
    if weight.shape[0] == 1:
        # a view, not weight[0]: indexing would write a whole gradient for every use
        return x @ weight.flatten(0, 1)
    return torch.einsum("bh...e,hew->bh...w", x.expand(-1, weight.shape[0], *x.shape[2:]), weight)


def xavier_per_head(heads: int, fan_in: int, fan_out: int) -> Float[Tensor, "H E W"]:
    """Draw one Xavier-uniform matrix per head."""
    weight = torch.empty(heads, fan_in, fan_out)
    for head in weight:
        nn.init.xavier_uniform_(head)
    return weight


def at_least_single(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Widen half precision to float32, in which sums of exponentials are safe; leave the rest."""
    return x.float() if x.element_size() < 4 else x


def inverse_softplus(x: float) -> float:
    """The argument at which softplus is x; x must be positive."""
    return x + math.log(-math.expm1(-x))
