"""General (bilinear, multiplicative) score: the dot product of the key with a mapped query.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1 (score `general`).

Deviations: the matrix is stored times the root of the key's width, so that energies of unit states
start with variance 1 and a step of Adam changes them as little as under `scaled_dot` (ADR 19); it
can be any matrix, and starts within 0.1 (section 4.1) from a width of 18 on. With several heads
each has its own.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import NoOptions
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from variants.per_head_linear import per_head_linear, xavier_per_head


@register(
    "score",
    "general",
    title="General (bilinear) score",
    revision=2,
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.1",
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("quick", "standard"),
)
class GeneralScore(Score):
    """q.(W k), W = weight / sqrt(Ek); one map a query; time O(L S Ek + L Eq Ek) per head."""

    gives = frozenset({"dot_form", "key_local"})

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.weight = nn.Parameter(xavier_per_head(dims.heads, dims.query_width, dims.key_width))
        self.scale = dims.key_width**-0.5

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Project the queries, then one matrix product."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        return self.scale * per_head_linear(call.query, self.weight) @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Projected query and key, and the scale of the matrix."""
        return per_head_linear(call.query, self.weight), call.memory.source.key, self.scale

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The bilinear form, key by key."""
        matrix = self.weight[one.head] / one.key.shape[1] ** 0.5
        found = []
        for s in range(one.num_keys):
            found.append(one.query @ (matrix @ one.key[s]))
        return torch.stack(found)
