"""Additive score: a one-layer perceptron on query and key.

Bahdanau et al., 2015, "Neural machine translation by jointly learning to align and translate",
https://arxiv.org/abs/1409.0473, appendix A.1.2.

Deviations: the hidden width is 64 by default, not 1000. W and U start at Xavier's scale, and v is
drawn, too; in the paper W and U start normal with a standard deviation of 0.001 and v at zero
(appendix B.1), which leaves small models at uniform weights for hundreds of steps. Per-key features
of history and position components enter inside the tanh.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.scores.hidden_layer import HiddenLayerConfig, HiddenLayerScore


@dataclass(frozen=True, kw_only=True)
class AdditiveConfig(HiddenLayerConfig):
    """Options of the additive score."""

    named: ClassVar[str] = "additive"


@register(
    "score",
    "additive",
    title="Additive score (Bahdanau)",
    config=AdditiveConfig,
    citation=Citation(
        text="Bahdanau et al., 2015",
        url="https://arxiv.org/abs/1409.0473",
        where="appendix A.1.2",
    ),
    cost=2.5,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    rosters=("quick", "standard"),
)
class AdditiveScore(HiddenLayerScore):
    """v . tanh(W q + U k + b); U k is made once per source; O(L S d_a) time, O(L S) memory."""

    starts = {"bias": 0.0}

    def __init__(self, config: AdditiveConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.query_map = nn.Parameter(xavier_per_head(heads, dims.query_width, width))
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.make_output(heads, width)
        self.make_feature_map(dims, width)

    def query_units(self, query: Float[Tensor, "B H L Eq"]) -> Float[Tensor, "B H L D"]:
        """W q."""
        return per_head_linear(query, self.query_map)

    def key_units(self, key: Float[Tensor, "B H S Ek"]) -> Float[Tensor, "B H S D"]:
        """U k + b."""
        return per_head_linear(key, self.key_map) + self.bias

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The perceptron, key by key."""
        found = []
        for s in range(one.num_keys):
            inside = self.bias[one.head, 0] + one.query @ self.query_map[one.head]
            inside = inside + one.key[s] @ self.key_map[one.head]
            if features is not None and self.feature_map is not None:
                inside = inside + features[s] @ self.feature_map[one.head]
            found.append(torch.tanh(inside) @ self.v[one.head, :, 0])
        return torch.stack(found)
