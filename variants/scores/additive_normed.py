"""Additive score with weight normalization: direction and length of the output vector apart.

Salimans & Kingma, 2016, "Weight normalization: a simple reparameterization to accelerate training
of deep neural networks", https://arxiv.org/abs/1602.07868, equation 2, on the additive score of
Bahdanau et al., 2015, as the normalized Bahdanau attention of TensorFlow's sequence-to-sequence
library has it: the length starts at sqrt(1 / d_a) and the bias at zero.

Deviations: with several heads each has its own length; matrices start at Xavier's scale. Per-key
features of history and position components enter inside the tanh.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.component import OneQuery, Score, expand_heads
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants._math import per_head_linear, xavier_per_head
from variants.scores.tanh_sum import tanh_sum


@dataclass(frozen=True, kw_only=True)
class AdditiveNormedConfig(Config):
    """Options of the normalized additive score."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units d_a, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"additive_normed: width must be at least 1, got {self.width}.")


@register(
    "score",
    "additive_normed",
    title="Additive score, weight-normalized",
    config=AdditiveNormedConfig,
    citation=Citation(
        text="Salimans & Kingma, 2016",
        url="https://arxiv.org/abs/1602.07868",
        where="equation 2, on Bahdanau et al., 2015",
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class AdditiveNormedScore(Score):
    """g v/|v| . tanh(W q + U k + b); time O(L S d_a) and memory O(L S) per head."""

    takes_features = True
    gives = frozenset({"key_local", "takes_features"})

    def __init__(self, config: AdditiveNormedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.query_map = nn.Parameter(xavier_per_head(heads, dims.query_width, width))
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.v = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.v, -(width**-0.5), width**-0.5)
        self.length = nn.Parameter(torch.full((heads, 1, 1), width**-0.5))
        self.feature_map: nn.Parameter | None = None
        if dims.num_features:
            self.feature_map = nn.Parameter(xavier_per_head(heads, dims.num_features, width))

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """An addition, a tanh (counted as one) and a multiply-add for each unit and pair."""
        return 4 * batch * heads * queries * keys * self.v.shape[1]

    def prepare(self, source: Source) -> Tree:
        """Project the keys, once per source; doubled, as `tanh_sum` expects them."""
        key = expand_heads(source.key, self.key_map.shape[0])
        return {"key": 2 * (per_head_linear(key, self.key_map) + self.bias)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Perceptron of every query and key."""
        query = 2 * per_head_linear(call.query, self.query_map)
        key = leaf(call.memory.parts, self.branch, "key")
        v = self.v * (self.length / self.v.norm(dim=1, keepdim=True))
        feature_map = None if self.feature_map is None else 2 * self.feature_map
        return tanh_sum(query, key, v, features, feature_map)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The perceptron, key by key and unit by unit, over the norm of v, times its length."""
        v = self.v[one.head, :, 0]
        squares = sum((v[unit] * v[unit] for unit in range(len(v))), one.query.new_zeros(()))
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            for unit in range(len(v)):
                inside = self.bias[one.head, 0, unit]
                inside = inside + one.query @ self.query_map[one.head, :, unit]
                inside = inside + one.key[s] @ self.key_map[one.head, :, unit]
                if features is not None and self.feature_map is not None:
                    inside = inside + features[s] @ self.feature_map[one.head, :, unit]
                total = total + v[unit] * torch.tanh(inside)
            found.append(self.length[one.head, 0, 0] * total / torch.sqrt(squares))
        return torch.stack(found)
