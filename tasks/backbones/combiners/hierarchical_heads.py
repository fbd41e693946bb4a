"""Multi-head attention over the contexts of the sources.

Libovický, Helcl & Mareček, 2018, "Input combination strategies for multi-source Transformer
decoder", https://arxiv.org/abs/1811.04716, section 3 (hierarchical); `hierarchical` is the additive
one that they had proposed for recurrent decoders.

Deviations: no dropout within the second attention.
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
class HierarchicalHeadsConfig(Config):
    """Options of the second attention."""

    heads: Annotated[int, IntRange(1, 16)] = 4
    """Heads of the attention among sources; they divide the width of the decoder's states."""

    def __post_init__(self) -> None:
        """Check the heads."""
        if self.heads < 1:
            raise InvalidConfig(f"hierarchical_heads: heads must be at least 1, got {self.heads}.")


@register(
    "combiner",
    "hierarchical_heads",
    config=HierarchicalHeadsConfig,
    citation=Citation(
        text="Libovický et al., 2018",
        url="https://arxiv.org/abs/1811.04716",
        where="section 3, hierarchical",
    ),
)
class HierarchicalHeadsCombiner(Combiner):
    """c = W [g1; g2; ...], g_h = sum_k b_hk V_h c_k, b_h = softmax_k(Q_h s . K_h c_k / sqrt(E))."""

    def __init__(
        self, config: HierarchicalHeadsConfig, sizes: CombinerSizes, attach: AttachSlot
    ) -> None:
        super().__init__(config, sizes, attach)
        if sizes.query % config.heads:
            raise InvalidConfig(
                f"hierarchical_heads: heads must divide the decoder's width {sizes.query}, got "
                f"{config.heads}."
            )
        read = self.one_width("hierarchical_heads")
        self.heads = config.heads
        self.query = nn.Linear(sizes.query, sizes.query, bias=False)
        self.key = nn.Linear(read, sizes.query, bias=False)
        self.value = nn.Linear(read, sizes.query, bias=False)
        self.join = nn.Linear(sizes.query, sizes.query, bias=False)
        self.context_width = sizes.query

    def combine(
        self, query: Float[Tensor, "B L D"], contexts: list[Float[Tensor, "B L _"]]
    ) -> Float[Tensor, "B L Dv"]:
        """Let every head weigh what was read from each source."""
        read = torch.stack(contexts, 2)
        asked = self.query(query).unflatten(-1, (self.heads, -1))
        keys = self.key(read).unflatten(-1, (self.heads, -1))
        values = self.value(read).unflatten(-1, (self.heads, -1))
        energy = torch.einsum("blhe,blkhe->blhk", asked, keys) / asked.shape[-1] ** 0.5
        mixed = torch.einsum("blhk,blkhe->blhe", torch.softmax(energy, -1), values)
        return self.join(mixed.flatten(2))
