"""Labeled relations as vectors: keys and values get an embedding of the edge between two tokens.

Shaw et al., 2018, "Self-attention with relative position representations",
https://arxiv.org/abs/1803.02155, section 3.1, equations 3 and 4: the input as a directed graph with
a label on each edge. Clipped distances as labels are `shaw_rpr`.

Deviations: the paper trains distances alone and leaves other graphs to the reader. Pairs without an
edge have a label of their own, whose vectors are learned like all others; tables start at Xavier's
scale. The key term is divided by the square root of the key width as in the paper, whatever scale
the score itself has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config
from bench.api.errors import Refused
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Mixed, Weights
from bench.api.source import leaf
from variants.per_head_linear import per_head_linear, xavier_per_head


@dataclass(frozen=True, kw_only=True)
class RelationAwareConfig(Config):
    """Options of relation vectors."""

    use: Annotated[Literal["both", "keys", "values"], Choices(("both", "keys", "values"))] = "both"
    """Which of keys and values get vectors."""
    tables: Annotated[Literal["per_head", "shared"], Choices(("per_head", "shared"))] = "per_head"
    """Whether heads have tables of their own or share one."""


@register(
    "position",
    "relation_aware",
    title="Relation-aware attention (labeled edges)",
    config=RelationAwareConfig,
    citation=Citation(
        text="Shaw et al., 2018",
        url="https://arxiv.org/abs/1803.02155",
        where="section 3.1, equations 3 and 4",
    ),
    default_task=DefaultTask(task="labeled_edges"),
)
class RelationAwarePosition(Position):
    """Adds q.a / sqrt(E) to the energy and the weighted mean of b to the output, by label.

    a and b are the vectors of the label of the pair. Time O(L S + L R E) per head, R labels.
    """

    needs = frozenset({"relations"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "labels are of pairs within one sequence, and cross attention has two",
        "pool": "labels are of pairs within one sequence, and the query of pooling is not in it",
    }

    def __init__(self, config: RelationAwareConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        if not dims.relations:
            raise Refused("relation_aware needs a backbone that hands labels between tokens on.")
        self.scale = dims.key_width**-0.5
        self.labels = dims.relations
        heads = 1 if config.tables == "shared" else dims.heads
        self.key_table: nn.Parameter | None = None
        self.value_table: nn.Parameter | None = None
        self.changes_energy = config.use != "values"
        self.changes_output = config.use != "keys"
        if self.changes_energy:
            self.energy_reads = frozenset({"queries"})
            self.key_table = nn.Parameter(xavier_per_head(heads, self.labels, dims.query_width))
        if self.changes_output:
            self.value_table = nn.Parameter(xavier_per_head(heads, self.labels, dims.value_width))

    def energy(self, call: Call) -> Float[Tensor, "#B Hq L S"]:
        """Score every label once a query, then look up the label of each key."""
        assert self.key_table is not None, "called only where keys have vectors"
        by_label = per_head_linear(call.query * self.scale, self.key_table.transpose(1, 2))
        return by_label.gather(-1, self._labels(call))

    def output(self, call: Call, weights: Weights) -> Mixed:
        """Sum the weights of each label, then mix one vector a label."""
        assert self.value_table is not None, "called only where values have vectors"
        share = weights.new_zeros(*weights.shape[:3], self.labels)
        share = share.scatter_add(-1, self._labels(call), weights)
        return per_head_linear(share, self.value_table)

    def _labels(self, call: Call) -> Int[Tensor, "B Hq L S"]:
        """Labels of the keys that have come so far, the same for all heads."""
        rows, heads, queries, _ = call.query.shape
        keys = call.memory.num_keys
        found = leaf(call.extras, "relation")[..., :keys]
        return found[:, None].expand(rows, heads, queries, keys)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One product a key with the vector of its label."""
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            if self.key_table is not None:
                table = self.key_table[one.head % self.key_table.shape[0]]
                vector = table[int(one.extras["relation"][s])]
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
                total = total + weights[s] * table[int(one.extras["relation"][s])]
        return total
