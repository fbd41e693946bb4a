"""Concatenation of the heaviest values: the best k keys side by side, projected back.

No paper: a weighted sum mixes the values of all keys, and this keeps the heaviest k separate. The
nearest is the concatenation of selected facts in memory networks (Weston et al., 2015,
https://arxiv.org/abs/1410.3916, section 3.1, k = 2 supporting facts).

Deviations: those networks choose one fact after the other; here all are chosen by one weight row.
Each value is multiplied by its weight, so that the scores get a gradient.
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
from bench.api.readout import Readout
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Mixed, Weights
from variants.per_head_linear import per_head_linear


@dataclass(frozen=True, kw_only=True)
class ConcatTopKConfig(Config):
    """Options of the concatenation."""

    k: Annotated[int, IntRange(1, 16, log=True)] = 4
    """Values kept (keys); where a query sees fewer, the positions of the others are zero."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.k < 1:
            raise InvalidConfig(f"concat_topk: k must be at least 1, got {self.k}.")


@register(
    "readout",
    "concat_topk",
    config=ConcatTopKConfig,
    title="Heaviest values side by side",
    citation=Citation(
        text="Weston et al., 2015", url="https://arxiv.org/abs/1410.3916", where="section 3.1"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "No paper reports this readout, so that no advantage is claimed; Weston et al. put chosen "
        "facts side by side in a memory network. Here the baseline recalls nearly every pair, "
        "which leaves no room above it."
    ),
    cost=1.5,
)
class ConcatTopK(Readout):
    """[a_1 v_1; ...; a_k v_k] M, weights descending, ties by position; M begins as k identities.

    Time O(L S log S + L k E^2) per head; at first it is the weighted sum of the best k.
    """

    gives = frozenset({"jumps"})
    removes = frozenset({"stream"})

    def __init__(self, config: ConcatTopKConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.k = config.k
        start = torch.eye(dims.value_width).repeat(config.k, 1)
        self.projection = nn.Parameter(start.repeat(dims.heads, 1, 1))
        self.starts = {"projection": start}  # a weighted sum of the k best

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """Sort, gather, project."""
        heads, length = weights.shape[1:3]
        value = expand_heads(call.memory.source.value, heads)
        ranked = weights if allowed is None else weights.masked_fill(~allowed, float("-inf"))
        # a stable order, so that ties do not depend on how queries are split
        order = ranked.detach().argsort(dim=-1, descending=True, stable=True)[..., : self.k]
        kept = order.shape[-1]
        place = order.flatten(2).unsqueeze(-1).expand(-1, -1, -1, value.shape[-1])
        chosen = value.gather(2, place).unflatten(2, (length, kept))
        chosen = chosen * weights.gather(-1, order).unsqueeze(-1)
        return per_head_linear(chosen.flatten(-2), self.projection[:, : kept * value.shape[-1]])

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """Take the best key, then the best of the others, k times."""
        width = one.value.shape[1]
        left = [s for s in range(one.num_keys) if allowed[s]]
        output = torch.zeros_like(one.value[0])
        for rank in range(min(self.k, len(left))):
            best = left[0]
            for s in left:
                if float(weights[s].detach()) > float(weights[best].detach()):
                    best = s
            left.remove(best)
            block = self.projection[one.head, rank * width : (rank + 1) * width]
            for out in range(width):
                term = sum(weights[best] * one.value[best, e] * block[e, out] for e in range(width))
                output = output + term * torch.eye(width, dtype=output.dtype)[out]
        return output
