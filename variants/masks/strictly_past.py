"""Strictly past: each query sees earlier keys alone, not the one at its own place.

Tan et al., 2025, "Scaling stick-breaking attention: an efficient implementation and in-depth
study", https://arxiv.org/abs/2410.17980, section 2, where stick-breaking reads keys before the
query.

Deviations: none. The first query has no key and reads zero.
"""

from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, register
from variants.one_sequence import CAUSAL_ONLY


@register(
    "mask",
    "strictly_past",
    title="Earlier keys alone",
    citation=Citation(
        text="Tan et al., 2025", url="https://arxiv.org/abs/2410.17980", where="section 2"
    ),
)
class StrictlyPastMask(Mask):
    """Keys j < i for query i; time O(L^2 E) per head."""

    kind = "dense"
    gives = frozenset({"strictly_past"})
    removes = frozenset({"stream"})
    unsupported = CAUSAL_ONLY

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """The triangle below the diagonal."""
        return key < query

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """Key by key."""
        return [s < one.position for s in range(one.num_keys)], [1.0] * one.num_keys
