"""Relative positions as vectors: keys and values get an embedding of their clipped distance.

Shaw et al., 2018, "Self-attention with relative position representations",
https://arxiv.org/abs/1803.02155, sections 3.1 and 3.2.

Deviations: computed by distance, without a vector for each pair of positions; tables start at
Xavier's scale. The key term is divided by the square root of the key width as in the paper,
whatever scale the score itself has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Mixed, Weights
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.positions.relative_distances import collect, spread


@dataclass(frozen=True, kw_only=True)
class ShawConfig(Config):
    """Options of relative position vectors."""

    clip: Annotated[int, IntRange(1, 64, log=True), Legal(0)] = 16
    """Distance from which on all are alike, k (tokens)."""
    use: Annotated[Literal["both", "keys", "values"], Choices(("both", "keys", "values"))] = "both"
    """Which of keys and values get vectors."""
    tables: Annotated[Literal["per_head", "shared"], Choices(("per_head", "shared"))] = "per_head"
    """Whether heads have tables of their own (the paper's base model) or share one."""

    def __post_init__(self) -> None:
        """Check the distance."""
        if self.clip < 0:
            raise InvalidConfig(f"shaw_rpr: clip must be at least 0, got {self.clip}.")


@register(
    "position",
    "shaw_rpr",
    title="Relative positions (Shaw)",
    config=ShawConfig,
    citation=Citation(
        text="Shaw et al., 2018",
        url="https://arxiv.org/abs/1803.02155",
        where="sections 3.1 and 3.2",
    ),
    default_task=DefaultTask(task="offset"),
)
class ShawPosition(Position):
    """Adds q.a / sqrt(E) to the energy and the weighted mean of b to the output, by distance.

    The distance of key j from query i is clip(j - i, -k, k). Time O(L S + L k E) per head.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "relative positions need one sequence, and cross attention has two",
        "pool": "relative positions need one sequence, and the query of pooling is not in it",
    }

    def __init__(self, config: ShawConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.clip = config.clip
        self.scale = dims.key_width**-0.5
        heads = 1 if config.tables == "shared" else dims.heads
        distances = 2 * config.clip + 1
        self.key_table: nn.Parameter | None = None
        self.value_table: nn.Parameter | None = None
        self.changes_energy = config.use != "values"
        self.changes_output = config.use != "keys"
        if self.changes_energy:
            self.energy_reads = frozenset({"queries"})
            self.key_table = nn.Parameter(xavier_per_head(heads, distances, dims.query_width))
        if self.changes_output:
            self.value_table = nn.Parameter(xavier_per_head(heads, distances, dims.value_width))

    def energy(self, call: Call) -> Float[Tensor, "#B Hq L S"]:
        """Score every distance once a query, then look up the distance of each key."""
        assert self.key_table is not None, "called only where keys have positions"
        by_distance = per_head_linear(call.query * self.scale, self.key_table.transpose(1, 2))
        return spread(by_distance, call.offset, call.memory.num_keys)

    def output(self, call: Call, weights: Weights) -> Mixed:
        """Sum the weights of each distance, then mix one vector a distance."""
        assert self.value_table is not None, "called only where values have positions"
        return per_head_linear(collect(weights, call.offset, self.clip), self.value_table)

    def _row(self, distance: int) -> int:
        return max(-self.clip, min(distance, self.clip)) + self.clip

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One product a key with the vector of its distance."""
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            if self.key_table is not None:
                table = self.key_table[one.head % self.key_table.shape[0]]
                vector = table[self._row(s - one.position)]
                for e in range(one.query.shape[0]):
                    total = total + one.query[e] * vector[e]
            found.append(total / one.key.shape[1] ** 0.5)
        return torch.stack(found)

    def oracle_output(self, one: OneQuery, weights: Float[Tensor, " S"]) -> Float[Tensor, " Ev"]:
        """The weighted vectors of all keys."""
        total = torch.zeros_like(one.value[0])
        if self.value_table is not None:
            table = self.value_table[one.head % self.value_table.shape[0]]
            for s in range(one.num_keys):
                total = total + weights[s] * table[self._row(s - one.position)]
        return total
