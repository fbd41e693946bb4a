"""Context vector: the product of each key's hidden units with a learned vector, whatever the query.

Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, section 2.2, equations 5 and 6.

Deviations: the hidden width defaults to 64, not 100; with several heads each has its own weights.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import per_head_linear, xavier_per_head


@dataclass(frozen=True, kw_only=True)
class ContextVectorConfig(Config):
    """Options of the context vector."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units d_a and length of the learned vector, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"context_vector: width must be at least 1, got {self.width}.")


@register(
    "score",
    "context_vector",
    title="Learned context vector, without a query",
    config=ContextVectorConfig,
    citation=Citation(
        text="Yang et al., 2016",
        url="https://aclanthology.org/N16-1174",
        where="section 2.2, equations 5 and 6",
    ),
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=birnn]"),
)
class ContextVectorScore(Score):
    """u.tanh(W k + b), once per source; time O(L S + S Ek d_a) per head.

    Made for pooling: where there are several queries, all get the same weights.
    """

    gives = frozenset({"key_local"})

    starts = {"bias": 0.0}

    def __init__(self, config: ContextVectorConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        heads, width = dims.heads, config.width
        self.key_map = nn.Parameter(xavier_per_head(heads, dims.key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.context = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.context, -(width**-0.5), width**-0.5)

    def prepare(self, source: Source) -> Tree:
        """The energy of every key."""
        key = expand_heads(source.key, self.key_map.shape[0])
        hidden = torch.tanh(per_head_linear(key, self.key_map) + self.bias)
        return {"energy": per_head_linear(hidden, self.context)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """The same row for every query."""
        energy = leaf(call.memory.parts, self.branch, "energy").transpose(-1, -2)
        return energy.expand(-1, -1, call.query.shape[2], -1)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The perceptron, key by key."""
        found = []
        for s in range(one.num_keys):
            inside = self.bias[one.head, 0] + one.key[s] @ self.key_map[one.head]
            found.append(torch.tanh(inside) @ self.context[one.head, :, 0])
        return torch.stack(found)
