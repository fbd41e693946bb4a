"""General (bilinear, multiplicative) score: the dot product of the key with a mapped query.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1 (score `general`).

Deviations: the matrix starts uniform in [-0.1, 0.1] as in section 4.1 only where it is narrow; a
wide one starts smaller, so that energies of unit states have variance 1 (ADR 19); with several
heads each has its own.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.component import OneQuery, Score, expand_heads
from bench.api.config import NoOptions
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Energy, Features
from variants.per_head_linear import bilinear_per_head, per_head_linear


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
    """q.(W k); a query is projected once; time O(L S Ek + L Eq Ek) per head."""

    gives = frozenset({"dot_form", "key_local"})

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.weight = nn.Parameter(bilinear_per_head(dims.heads, dims.query_width, dims.key_width))

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Project the queries, then one matrix product."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        return per_head_linear(call.query, self.weight) @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Projected query and key, without a scale."""
        return per_head_linear(call.query, self.weight), call.memory.source.key, 1.0

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The bilinear form, key by key."""
        found = []
        for s in range(one.num_keys):
            found.append(one.query @ (self.weight[one.head] @ one.key[s]))
        return torch.stack(found)
