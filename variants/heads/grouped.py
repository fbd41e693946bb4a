"""Projections in which query heads may share keys, and queries and keys may be normalized."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.source import Source
from variants.heads.projections import JoinedHeads
from variants.heads.query_key_norm import QueryKeyNorm


class NormedHeads(JoinedHeads):
    """Joined heads with a norm of queries and keys, or none; a subclass normalizes the keys."""

    norm: QueryKeyNorm | None

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L E"]:
        """Project, split and normalize."""
        found = super().query(x)
        return found if self.norm is None else self.norm.query(found)

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "H E"]:
        """One vector, head by head."""
        found = super().oracle_query(x)
        if self.norm is None:
            return found
        return torch.stack([self.norm.oracle_query(head) for head in found])


class GroupedHeads(NormedHeads):
    """Normed heads whose keys are normalized as they are projected."""

    def make(self, dims: Dims, source_width: int, *, bias: bool, norm: QueryKeyNorm | None) -> None:
        """Make maps and norm; a subclass calls this while it is built."""
        self.project(dims, source_width, bias=bias)
        self.norm = norm

    def source(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """Project keys and values, split, and normalize the keys."""
        found = super().source(x, mask, tokens)
        return found if self.norm is None else replace(found, key=self.norm.key(found.key))

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "Hk E"], Float[Tensor, "Hk E"]]:
        """One vector, head by head."""
        key, value = super().oracle_source(x)
        if self.norm is None:
            return key, value
        return torch.stack([self.norm.oracle_key(head) for head in key]), value
