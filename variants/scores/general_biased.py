"""General score with a bias: the mapped query gets a bias before it meets the key.

Sordoni et al., 2016, "Iterative alternating neural attention for machine reading",
https://arxiv.org/abs/1606.02245, section 3.2 (attentive read of the query), as named by Galassi et
al., 2021, "Attention in natural language processing", https://arxiv.org/abs/1902.02181, table 3.

Deviations: the matrix is stored as that of `general`, and the bias starts at zero; with several
heads each has its own.
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
from bench.api.shapes import Energy, Features, Query
from variants.per_head_linear import per_head_linear, xavier_per_head


@register(
    "score",
    "general_biased",
    title="General score with a bias",
    revision=2,
    citation=Citation(
        text="Sordoni et al., 2016",
        url="https://arxiv.org/abs/1606.02245",
        where="section 3.2",
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class GeneralBiasedScore(Score):
    """k.(W q + b) = k.W q + b.k, the second term a prior on content; time O(L S Ek + L Eq Ek)."""

    gives = frozenset({"dot_form", "key_local"})

    starts = {"bias": 0.0}

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)
        self.weight = nn.Parameter(xavier_per_head(dims.heads, dims.query_width, dims.key_width))
        self.scale = dims.key_width**-0.5
        self.bias = nn.Parameter(torch.zeros(dims.heads, 1, dims.key_width))

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Project the queries, then one matrix product."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        return self._project(call.query) @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Projected query and key, without a scale."""
        return self._project(call.query), call.memory.source.key, 1.0

    def _project(self, query: Query) -> Float[Tensor, "B Hq L Ek"]:
        return self.scale * per_head_linear(query, self.weight) + self.bias

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The bilinear form and the product with the bias, key by key."""
        matrix = self.weight[one.head] / one.key.shape[1] ** 0.5
        found = []
        for s in range(one.num_keys):
            form = one.query @ (matrix @ one.key[s])
            found.append(form + self.bias[one.head, 0] @ one.key[s])
        return torch.stack(found)
