"""Dot product: q.k as it is.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1 (score `dot`).

Deviations: none.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features


@register(
    "score",
    "dot",
    title="Dot product",
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.1",
    ),
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class DotScore(Score):
    """q.k; no parameters; time O(L S E) per head.

    In a raw slot it needs queries and keys of equal width.
    """

    needs = frozenset({"equal_width"})
    gives = frozenset({"dot_form", "key_local"})
    any_width = True
    starts_outside = (
        "a dot product without a scale has the variance of the width over states of variance 1, "
        "by definition; it has no parameter to start smaller"
    )

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        return call.query @ key.transpose(-1, -2)

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float]:
        """Query and key as they are, without a scale."""
        return call.query, call.memory.source.key, 1.0

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """Sum of products, key by key."""
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            for e in range(one.query.shape[0]):
                total = total + one.query[e] * one.key[s, e]
            found.append(total)
        return torch.stack(found)
