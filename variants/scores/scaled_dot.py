"""Scaled dot product: q.k divided by the square root of the width.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.2.1,
equation 1.

Deviations: none.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features


@register(
    "score",
    "scaled_dot",
    title="Scaled dot product",
    citation=Citation(
        text="Vaswani et al., 2017",
        url="https://arxiv.org/abs/1706.03762",
        where="section 3.2.1, equation 1",
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("quick", "standard"),
)
class ScaledDotScore(Score):
    """q.k / sqrt(E); no parameters; time O(L S E) per head.

    In a raw slot it needs queries and keys of equal width.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"dot_form", "key_local"})
    any_width = True

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.scale = dims.key_width**-0.5

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        return (call.query * self.scale) @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Query and key as they are."""
        return call.query, call.memory.source.key, self.scale

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Sum of products, key by key."""
        width = one.query.shape[0]
        return torch.stack(
            [
                sum((one.query[e] * one.key[s, e] for e in range(width)), one.query.new_zeros(()))
                / width**0.5
                for s in range(one.num_keys)
            ]
        )
