"""DeBERTa: content and position are separate vectors, and each looks at the other.

He, Liu, Gao & Chen, 2021, "DeBERTa: decoding-enhanced BERT with disentangled attention",
https://arxiv.org/abs/2006.03654, section 3.1, equations 2 to 4.

Deviations: every head and layer has tables of its own, which stand for the paper's shared table and
its projections. Distances are clipped at 32, the paper's at 512. The variant `deberta` divides by
the root of 3 E as the paper does; the component alone keeps the scale of the score.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from variants.per_head_linear import per_head_linear, xavier_per_head
from variants.positions.relative_distances import spread

PAPER = Citation(
    text="He et al., 2021",
    url="https://arxiv.org/abs/2006.03654",
    where="section 3.1, equations 2 to 4",
)


@dataclass(frozen=True, kw_only=True)
class DebertaConfig(Config):
    """Options of disentangled attention."""

    clip: Annotated[int, IntRange(1, 512, log=True)] = 32
    """Distance from which on all are alike, k (tokens)."""
    content_to_position: bool = True
    """Whether the query's content looks at the key's position."""
    position_to_content: bool = True
    """Whether the query's position looks at the key's content."""

    def __post_init__(self) -> None:
        """Check that there is a distance, and something to do."""
        if self.clip < 1:
            raise InvalidConfig(f"deberta: clip must be at least 1, got {self.clip}.")
        if not (self.content_to_position or self.position_to_content):
            raise InvalidConfig("deberta: without both terms there are no positions.")


@register("position", "deberta", config=DebertaConfig, citation=PAPER)
class Deberta(Position):
    """(q_i . a[i - j] + k_j . b[j - i]) / sqrt(E) is added to the energy.

    Tables have 2 k rows: distance d has row d + k, cut to 0 and 2 k - 1. Time
    O((L + S) k E + L S) per head, memory O(L S) whether or not weights are wanted.
    """

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "relative positions need one sequence, and cross attention has two",
        "pool": "relative positions need one sequence, and the query of pooling is not in it",
    }
    changes_energy = True

    def __init__(self, config: DebertaConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.clip = config.clip
        self.scale = dims.key_width**-0.5
        rows = 2 * config.clip
        self.key_table: nn.Parameter | None = None
        self.query_table: nn.Parameter | None = None
        if config.content_to_position:
            self.energy_reads |= {"queries"}
            self.key_table = nn.Parameter(xavier_per_head(dims.heads, rows, dims.query_width))
        if config.position_to_content:
            self.energy_reads |= {"keys"}
            self.query_table = nn.Parameter(xavier_per_head(dims.heads, rows, dims.key_width))

    def energy(self, call: Call) -> Float[Tensor, "B Hq L S"]:
        """Each term scores every distance once, for each query or for each key."""
        keys, queries = call.memory.num_keys, call.query.shape[2]
        found = []
        if self.key_table is not None:
            scores = self._by_distance(call.query, self.key_table)
            found.append(spread(scores, call.offset, keys))
        if self.query_table is not None:
            key = expand_heads(call.memory.source.key, call.query.shape[1])
            scores = self._by_distance(key, self.query_table)
            # seen from the keys, the first query stands `offset` places behind the first key
            found.append(spread(scores, -call.offset, queries).transpose(-1, -2))
        return found[0] if len(found) == 1 else found[0] + found[1]

    def _by_distance(
        self, x: Float[Tensor, "B Hq n E"], table: Float[Tensor, "Hq R E"]
    ) -> Float[Tensor, "B Hq n K"]:
        """Products with every row, in the order in which `spread` counts, from -k to k."""
        scores = per_head_linear(x * self.scale, table.transpose(1, 2))
        # `spread` counts the other way round, and has a number more than there are rows
        return torch.cat((scores[..., -1:], scores.flip(-1)), -1)

    def _row(self, distance: int) -> int:
        if distance <= -self.clip:
            return 0
        return 2 * self.clip - 1 if distance >= self.clip else distance + self.clip

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """Two products per key."""
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            if self.key_table is not None:
                vector = self.key_table[one.head, self._row(one.position - s)]
                for e in range(one.query.shape[0]):
                    total = total + one.query[e] * vector[e]
            if self.query_table is not None:
                vector = self.query_table[one.head, self._row(s - one.position)]
                for e in range(one.key.shape[1]):
                    total = total + one.key[s, e] * vector[e]
            found.append(total / one.key.shape[1] ** 0.5)
        return torch.stack(found)


register_recipe(
    "deberta",
    Recipe(
        axes={
            "score": "scaled_dot",
            "position": "deberta",
            "normalizer": "softmax[temperature=1.7320508075688772]",  # the root of three terms
        },
        main="position",
    ),
    module=__name__,
    title="Disentangled attention (DeBERTa)",
    citation=PAPER,
    cost=1.5,
    default_task=DefaultTask(task="offset"),
    deviations=(
        "those of the position component `deberta`. With one of the two terms switched off, "
        "`normalizer=softmax[temperature=1.4142135623730951]` is the scale of two terms."
    ),
)
