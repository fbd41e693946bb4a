"""Additive score with weight normalization: direction and length of the output vector apart.

Salimans & Kingma, 2016, "Weight normalization: a simple reparameterization to accelerate training
of deep neural networks", https://arxiv.org/abs/1602.07868, equation 2, on the additive score of
Bahdanau et al., 2015, as the normalized Bahdanau attention of TensorFlow's sequence-to-sequence
library has it: the length starts at sqrt(1 / d_a) and the bias at zero.

Deviations: with several heads each has its own length; matrices start at Xavier's scale. Per-key
features of history and position components enter inside the tanh.
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
class AdditiveNormedConfig(HiddenLayerConfig):
    """Options of the normalized additive score."""

    named: ClassVar[str] = "additive_normed"


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
class AdditiveNormedScore(HiddenLayerScore):
    """g v/|v| . tanh(W q + U k + b); time O(L S d_a) and memory O(L S) per head."""

    def __init__(self, config: AdditiveNormedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.query_map = nn.Parameter(xavier_per_head(heads, dims.query_width, width))
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.make_output(heads, width)
        self.length = nn.Parameter(torch.full((heads, 1, 1), width**-0.5))
        # v begins with the length that a vector of its width has in the published code
        self.starts = {"bias": 0.0, "length": width**-0.5}
        self.make_feature_map(dims, width)

    def query_units(self, query: Float[Tensor, "B H L Eq"]) -> Float[Tensor, "B H L D"]:
        """W q."""
        return per_head_linear(query, self.query_map)

    def key_units(self, key: Float[Tensor, "B H S Ek"]) -> Float[Tensor, "B H S D"]:
        """U k + b."""
        return per_head_linear(key, self.key_map) + self.bias

    def output_vector(self) -> Float[Tensor, "H D 1"]:
        """The vector v over its norm, times the length g."""
        return self.v * (self.length / self.v.norm(dim=1, keepdim=True))

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The perceptron, key by key, over the norm of v, times its length."""
        v = self.v[one.head, :, 0]
        direction = self.length[one.head, 0, 0] * v / torch.sqrt((v * v).sum())
        found = []
        for s in range(one.num_keys):
            inside = self.bias[one.head, 0] + one.query @ self.query_map[one.head]
            inside = inside + one.key[s] @ self.key_map[one.head]
            if features is not None and self.feature_map is not None:
                inside = inside + features[s] @ self.feature_map[one.head]
            found.append(torch.tanh(inside) @ direction)
        return torch.stack(found)
