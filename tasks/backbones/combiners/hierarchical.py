"""Attention over the contexts of the sources: first within each source, then among them.

Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
https://arxiv.org/abs/1704.06567 (hierarchical attention combination).

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot, Combiner, CombinerSizes
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register


@dataclass(frozen=True, kw_only=True)
class HierarchicalCombinerConfig(Config):
    """Options of the second attention."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units of the additive score among sources."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"hierarchical: width must be at least 1, got {self.width}.")


@register(
    "combiner",
    "hierarchical",
    config=HierarchicalCombinerConfig,
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="hierarchical attention combination",
    ),
)
class HierarchicalCombiner(Combiner):
    """c = sum_k b_k U_k c_k, where b = softmax_k v . tanh(W s + V_k c_k)."""

    def __init__(
        self, config: HierarchicalCombinerConfig, sizes: CombinerSizes, attach: AttachSlot
    ) -> None:
        super().__init__(config, sizes, attach)
        widths = [slot.output_width for slot in self.slots]
        self.of_query = nn.Linear(sizes.query, config.width)
        self.of_context = nn.ModuleList(nn.Linear(w, config.width, bias=False) for w in widths)
        self.value = nn.ModuleList(nn.Linear(w, sizes.query, bias=False) for w in widths)
        self.v = nn.Linear(config.width, 1, bias=False)
        self.context_width = sizes.query

    def combine(
        self, query: Float[Tensor, "B L D"], contexts: list[Float[Tensor, "B L _"]]
    ) -> Float[Tensor, "B L Dv"]:
        """Weigh what was read from each source."""
        share = self.shares(query, contexts)
        values = [value(context) for value, context in zip(self.value, contexts, strict=True)]
        return (share.unsqueeze(-1) * torch.stack(values, -2)).sum(-2)

    def shares(self, query: Float[Tensor, "B L D"], contexts: list[Tensor]) -> Tensor:
        """b, the weight of every source."""
        asked = self.of_query(query)
        scores = [
            self.v(torch.tanh(asked + of_context(context)))
            for of_context, context in zip(self.of_context, contexts, strict=True)
        ]
        return torch.softmax(torch.cat(scores, -1), -1)
