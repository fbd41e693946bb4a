"""Similarity score: a fixed similarity of query and key, without parameters.

Galassi et al., 2021, "Attention in natural language processing",
https://arxiv.org/abs/1902.02181, table 3 (compatibility function `similarity`).

Deviations: the survey leaves the measure open; these are the cosine and two negative distances.
The square of `neg_l2_squared` is written out, so that in single precision it is wrong by about 1e-7
of the squared norms: subtract a center from inputs that lie far from zero, such as years.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from variants.precision import at_least_single

Kind = Literal["neg_l1", "neg_l2_squared", "cosine"]
EPS = 1e-6
"""Least norm under the cosine."""


@dataclass(frozen=True, kw_only=True)
class SimilarityConfig(Config):
    """Options of the similarity score."""

    kind: Annotated[Kind, Choices(("neg_l1", "neg_l2_squared", "cosine"))] = "neg_l1"
    """The measure; the default is the one that no other score has."""


@register(
    "score",
    "similarity",
    title="Fixed similarity",
    config=SimilarityConfig,
    citation=Citation(
        text="Galassi et al., 2021", url="https://arxiv.org/abs/1902.02181", where="table 3"
    ),
    cost=1.1,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class SimilarityScore(Score):
    """-sum |q - k|, -|q - k|^2 or the cosine; no parameters; time O(L S E) per head.

    In a raw slot it needs queries and keys of equal width.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"key_local"})
    starts_outside = (
        "distances grow with the width and have no scale, by definition; "
        "there is no parameter to start smaller"
    )

    def __init__(self, config: SimilarityConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.kind = config.kind

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """A multiply-add a pair and unit; without a product, a difference, its size and a sum."""
        each = 3 if self.kind == "neg_l1" else 2
        return each * batch * heads * queries * keys * dims.key_width

    def energy(self, call: Call, features: Features | None) -> Energy:
        """The measure, without ever holding differences of all pairs."""
        query = call.query
        key = expand_heads(call.memory.source.key, query.shape[1])
        if self.kind == "neg_l1":
            # not written for half precision
            wide = torch.cdist(at_least_single(query), at_least_single(key), p=1.0)
            return -wide.to(query.dtype)
        if self.kind == "cosine":
            query, key = (functional.normalize(x, dim=-1, eps=EPS) for x in (query, key))
            return query @ key.transpose(-1, -2)
        squares = key.square().sum(-1, keepdim=True).transpose(-1, -2)
        return (2 * query) @ key.transpose(-1, -2) - squares - query.square().sum(-1, keepdim=True)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The measure, key by key and unit by unit."""
        found = []
        for s in range(one.num_keys):
            pairs = list(zip(one.query, one.key[s], strict=True))
            if self.kind == "neg_l1":
                found.append(-_total([torch.abs(q - k) for q, k in pairs]))
            elif self.kind == "neg_l2_squared":
                found.append(-_total([(q - k) ** 2 for q, k in pairs]))
            else:
                norms = [_total([x * x for x in side]) ** 0.5 for side in zip(*pairs, strict=True)]
                found.append(_total([q * k for q, k in pairs]) / (norms[0] * norms[1]))
        return torch.stack(found)


def _total(terms: list[Tensor]) -> Tensor:
    return sum(terms[1:], terms[0])
