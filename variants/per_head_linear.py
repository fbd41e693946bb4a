"""Linear maps with a matrix of their own for each head."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


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


def uniform_per_head(
    heads: int, fan_in: int, fan_out: int, bound: float = 0.1
) -> Float[Tensor, "H E W"]:
    """Draw one matrix per head, uniform in [-bound, bound]; 0.1 is Luong et al., section 4.1."""
    return torch.empty(heads, fan_in, fan_out).uniform_(-bound, bound)
