"""The product of weights and values."""

from jaxtyping import Float
from torch import Tensor

from bench.api.heads import expand_heads
from bench.api.shapes import Weights


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
