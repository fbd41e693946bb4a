"""Products with weights in bfloat16, in networks whose numbers are float32.

Processors with instructions for bfloat16 take such a product in about half the time. Weights, their
gradients, sums over states and what attention computes between its projections stay in float32.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

Precision = Literal["float32", "bfloat16"]


class Bfloat16Linear(nn.Linear):
    """A linear map whose product is taken in bfloat16; its weights and its answer are not."""

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B N"]:
        """Map the last dimension."""
        bias = None if self.bias is None else self.bias.bfloat16()
        product = nn.functional.linear(x.bfloat16(), self.weight.bfloat16(), bias)
        return product.to(x.dtype)


def linear(inputs: int, outputs: int, precision: Precision) -> nn.Linear:
    """A linear map with a product in this precision."""
    kind = Bfloat16Linear if precision == "bfloat16" else nn.Linear
    return kind(inputs, outputs)


def project_in(heads: nn.Module, precision: Precision) -> None:
    """Take products of the maps to queries, keys and values, and back, in this precision.

    Heads are made without knowing of it; the weights of their maps stay as they are.
    """
    for one in heads.modules():
        if precision == "bfloat16" and type(one) is nn.Linear:
            one.__class__ = Bfloat16Linear
