"""Concat score: a perceptron without bias on query and key side by side.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1 (score `concat`).

Deviations: the matrix starts at Xavier's scale, not uniform in [-0.1, 0.1]; its two halves are
applied to query and key apart, so that keys are projected once per source; with several heads each
has its own. Per-key features of history and position components enter inside the tanh.
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
class ConcatConfig(Config):
    """Options of the concat score."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"concat: width must be at least 1, got {self.width}.")


@register(
    "score",
    "concat",
    title="Concat score (Luong)",
    config=ConcatConfig,
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.1",
    ),
    cost=1.2,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class ConcatScore(Score):
    """v . tanh(W [q; k]); time O(L S d_a) and memory O(L S) per head."""

    takes_features = True
    gives = frozenset({"key_local", "takes_features"})

    def __init__(self, config: ConcatConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.query_width = dims.query_width
        joined = dims.query_width + dims.key_width
        self.weight = nn.Parameter(xavier_per_head(heads, joined, width))
        self.v = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.v, -(width**-0.5), width**-0.5)
        self.feature_map: nn.Parameter | None = None
        if dims.num_features:
            self.feature_map = nn.Parameter(xavier_per_head(heads, dims.num_features, width))

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """An addition, a tanh (counted as one) and a multiply-add for each unit and pair."""
        return 4 * batch * heads * queries * keys * self.v.shape[1]

    def prepare(self, source: Source) -> Tree:
        """Project the keys, once per source; doubled, as `tanh_sum` expects them."""
        key = expand_heads(source.key, self.weight.shape[0])
        return {"key": 2 * per_head_linear(key, self.weight[:, self.query_width :])}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Perceptron of every query and key."""
        query = 2 * per_head_linear(call.query, self.weight[:, : self.query_width])
        key = leaf(call.memory.parts, self.branch, "key")
        feature_map = None if self.feature_map is None else 2 * self.feature_map
        return tanh_sum(query, key, self.v, features, feature_map)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Query and key joined, key by key, then unit by unit."""
        found = []
        for s in range(one.num_keys):
            joined = torch.cat((one.query, one.key[s]))
            total = one.query.new_zeros(())
            for unit in range(self.v.shape[1]):
                inside = joined @ self.weight[one.head, :, unit]
                if features is not None and self.feature_map is not None:
                    inside = inside + features[s] @ self.feature_map[one.head, :, unit]
                total = total + self.v[one.head, unit, 0] * torch.tanh(inside)
            found.append(total)
        return torch.stack(found)
