"""Cosine score: the cosine of query and key, times a strength that sharpens it.

Graves et al., 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401, section 3.3.1,
equations 5 and 6 (content addressing).

Deviations: the strength is one learned number a head, or fixed, where the paper's controller emits
one a step; norms are at least 1e-6, so that a vector of zeros has energy zero.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features, Query
from bench.api.source import Source, Tree, leaf
from variants.softplus import inverse_softplus

EPS = 1e-6
"""Least norm; the smallest power of ten that half precision can hold."""


@dataclass(frozen=True, kw_only=True)
class CosineConfig(Config):
    """Options of the cosine score."""

    strength: Annotated[float, FloatRange(0.1, 100.0, log=True)] = 10.0
    """Factor of the cosine, beta (logits); 1 cannot focus among many keys."""
    learned: Annotated[bool, Choices((True, False))] = True
    """Whether the strength is learned, one per head, from that value on."""

    def __post_init__(self) -> None:
        """Check the strength."""
        if self.strength < 0 or (self.learned and not self.strength):
            raise InvalidConfig(
                "cosine: strength must be positive, or 0 where it is not learned, "
                f"got {self.strength}."
            )


@register(
    "score",
    "cosine",
    title="Cosine score",
    config=CosineConfig,
    citation=Citation(
        text="Graves et al., 2014",
        url="https://arxiv.org/abs/1410.5401",
        where="section 3.3.1, equations 5 and 6",
    ),
    cost=1.15,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class CosineScore(Score):
    """beta q.k / (|q| |k|); norms of keys are computed once per source; time O(L S E) per head.

    In a raw slot it needs queries and keys of equal width.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"dot_form", "key_local"})

    def __init__(self, config: CosineConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.fixed = config.strength
        self.raw_strength: nn.Parameter | None = None
        if config.learned:
            start = inverse_softplus(config.strength)
            self.raw_strength = nn.Parameter(torch.full((dims.heads, 1, 1), start))
            self.starts = {"raw_strength": start}

    def strength(self) -> Float[Tensor, "H 1 1"] | float:
        """Beta of each head."""
        if self.raw_strength is None:
            return self.fixed
        return functional.softplus(self.raw_strength)

    def prepare(self, source: Source) -> Tree:
        """Norms of the keys, which a rotation of the keys leaves as they are."""
        return {"norm": _norm(source.key)}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product of unit vectors."""
        query, key, _ = self.dot_form(call)
        return query @ expand_heads(key, query.shape[1]).transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Query, Tensor, float]:
        """Unit vectors, the query's times the strength."""
        norm = leaf(call.memory.parts, self.branch, "norm")
        query = self.strength() * (call.query / _norm(call.query))
        return query, call.memory.source.key / norm, 1.0

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Sum of products over the norms, key by key."""
        strength = self.strength()
        beta = strength if isinstance(strength, float) else strength[one.head, 0, 0]
        found = []
        for s in range(one.num_keys):
            dot, of_query, of_key = (one.query.new_zeros(()) for _ in range(3))
            for e in range(one.query.shape[0]):
                dot = dot + one.query[e] * one.key[s, e]
                of_query = of_query + one.query[e] ** 2
                of_key = of_key + one.key[s, e] ** 2
            found.append(beta * dot / (of_query**0.5 * of_key**0.5))
        return torch.stack(found)


def _norm(x: Float[Tensor, "B H n E"]) -> Float[Tensor, "B H n 1"]:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=EPS)
