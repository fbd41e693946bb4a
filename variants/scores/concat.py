"""Concat score: a perceptron without bias on query and key side by side.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1 (score `concat`).

Deviations: the two halves of the matrix are applied to query and key apart, so that keys are
projected once per source; with several heads each has its own. Per-key features of history and
position components enter inside the tanh. All weights start within 0.1 (section 4.1).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from variants.per_head_linear import per_head_linear, uniform_per_head
from variants.scores.hidden_layer import HiddenLayerConfig, HiddenLayerScore


@dataclass(frozen=True, kw_only=True)
class ConcatConfig(HiddenLayerConfig):
    """Options of the concat score."""

    named: ClassVar[str] = "concat"


@register(
    "score",
    "concat",
    title="Concat score (Luong)",
    revision=2,
    config=ConcatConfig,
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.1",
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Luong et al. report that their own form of it did not do well, with a perplexity of 6.7 "
        "where the dot product has 6.1, from English to German. Here its mean is higher than the "
        "baseline's, and a run of few seeds may leave the difference undecided."
    ),
)
class ConcatScore(HiddenLayerScore):
    """v . tanh(W [q; k]); time O(L S d_a) and memory O(L S) per head."""

    def __init__(self, config: ConcatConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.query_width = dims.query_width
        joined = dims.query_width + dims.key_width
        self.weight = nn.Parameter(uniform_per_head(heads, joined, width))
        self.v = nn.Parameter(uniform_per_head(heads, width, 1))
        self.make_feature_map(dims, width)

    def query_units(self, query: Float[Tensor, "B H L Eq"]) -> Float[Tensor, "B H L D"]:
        """The first half of W."""
        return per_head_linear(query, self.weight[:, : self.query_width])

    def key_units(self, key: Float[Tensor, "B H S Ek"]) -> Float[Tensor, "B H S D"]:
        """The second half of W."""
        return per_head_linear(key, self.weight[:, self.query_width :])

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Query and key joined, key by key."""
        found = []
        for s in range(one.num_keys):
            joined = torch.cat((one.query, one.key[s]))
            inside = joined @ self.weight[one.head]
            if features is not None and self.feature_map is not None:
                inside = inside + features[s] @ self.feature_map[one.head]
            found.append(torch.tanh(inside) @ self.v[one.head, :, 0])
        return torch.stack(found)
