"""Shared queries and keys: one map makes the queries, and the keys are the queries at unit length.

Kitaev, Kaiser & Levskaya, 2020, "Reformer: the efficient transformer",
https://arxiv.org/abs/2001.04451, section 2 ("shared-QK").

Deviations: none. Which keys a query may see, and so whether a token reads its own value, is the
business of the mask.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.registry import Citation, register
from bench.api.shapes import Query
from bench.api.source import Source, Tree
from variants.heads.projections import JoinedHeads, oracle_linear, split_heads, width_of_head

EPS = 1e-6
"""The least length that a query is divided by."""


@dataclass(frozen=True, kw_only=True)
class SharedQkConfig(Config):
    """Options of shared queries and keys."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    bias: bool = False
    """Whether the projections have biases."""


@register(
    "head",
    "shared_qk",
    title="Shared queries and keys",
    config=SharedQkConfig,
    citation=Citation(
        text="Kitaev et al., 2020", url="https://arxiv.org/abs/2001.04451", where="section 2"
    ),
)
class SharedQkHeads(JoinedHeads):
    """Linear maps to queries and values of h heads of width D/h, and back; k = q / |q|."""

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "its keys are the queries, and cross attention has keys of another sequence",
        "pool": "its keys are the queries, and pooling has one query that is no key",
    }

    def __init__(
        self,
        config: SharedQkConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = width_of_head("shared_qk", config.heads, query_width)
        self.dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        self.output_width = query_width
        self.to_query = nn.Linear(query_width, query_width, bias=config.bias)
        self.to_value = nn.Linear(source_width, query_width, bias=config.bias)
        self.to_output = nn.Linear(query_width, query_width, bias=config.bias)
        for layer in (self.to_query, self.to_value, self.to_output):
            nn.init.xavier_uniform_(layer.weight)

    def source(
        self,
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """Queries at unit length as keys, and values."""
        return self._source_of(self.query(x), x, mask, tokens)

    def own(
        self,
        x: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None,
        tokens: Int[Tensor, "B L"] | None,
        past: Tree,
    ) -> tuple[Query, Source, Tree]:
        """The same, with one projection for both."""
        query = self.query(x)
        return query, self._source_of(query, x, mask, tokens), past

    def _source_of(
        self,
        query: Float[Tensor, "B H S E"],
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        key = functional.normalize(query, dim=-1, eps=EPS)
        value = split_heads(self.to_value(x), self.dims.kv_heads)
        return Source(key=key, value=value, mask=mask, tokens=tokens)

    def oracle_source(
        self, x: Float[Tensor, " D"]
    ) -> tuple[Float[Tensor, "H E"], Float[Tensor, "H E"]]:
        """Head by head and unit by unit."""
        keys = []
        for query in self.oracle_query(x):
            length = torch.sqrt(sum((unit * unit for unit in query), torch.zeros_like(query[0])))
            keys.append(torch.stack([unit / length.clamp(min=EPS) for unit in query]))
        values, width = oracle_linear(self.to_value, x), self.dims.value_width
        heads = [values[h * width : (h + 1) * width] for h in range(self.dims.heads)]
        return torch.stack(keys), torch.stack([torch.stack(head) for head in heads])
