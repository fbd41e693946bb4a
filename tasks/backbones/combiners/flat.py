"""One softmax over the positions of all sources: they compete for the same attention.

Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
https://arxiv.org/abs/1704.06567 (flat attention combination).

Deviations: each source is projected once, to the decoder's width, for keys and values alike; the
score's own key map stands after it, so keys still have a matrix of their own a source.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from bench.api.config import NoOptions
from bench.api.decoder import AttachSlot, Combiner, WiringSizes
from bench.api.encoder import Encoded
from bench.api.registry import Citation, register
from bench.api.source import Memory
from bench.api.task import Batch
from bench.api.variant import Slot


@register(
    "combiner",
    "flat",
    citation=Citation(
        text="Libovický & Helcl, 2017",
        url="https://arxiv.org/abs/1704.06567",
        where="flat combination",
    ),
)
class FlatCombiner(Combiner):
    """One slot over [U1 h1; U2 h2; ...]; its weights over all sources together sum to one."""

    # a position of another source has no word of the first one
    takes = frozenset({"source_tokens", "source_states"})

    def __init__(self, config: NoOptions, sizes: WiringSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.project = nn.ModuleList(
            nn.Linear(width, sizes.hidden, bias=False) for width in sizes.sources
        )

    def make_slots(self, sizes: WiringSizes, attach: AttachSlot) -> tuple[Slot, ...]:
        """One for all sources."""
        return (attach(sizes.hidden, sizes.hidden),)

    def prepare(
        self, sources: tuple[Encoded, ...], tokens: Int[Tensor, "B S"] | None
    ) -> tuple[Memory, ...]:
        """Put the projected sources one behind the other."""
        states = [p(source.states) for p, source in zip(self.project, sources, strict=True)]
        return (self.slots[0].prepare(torch.cat(states, 1), _joint_mask(sources)),)

    def arrange(self, batch: Batch) -> Batch:
        """Positions of the other sources are aligned with nothing."""
        return batch.joined()


def _joint_mask(sources: tuple[Encoded, ...]) -> Bool[Tensor, "B S"] | None:
    if all(source.mask is None for source in sources):
        return None
    masks = [
        torch.ones_like(source.states[..., 0], dtype=torch.bool)
        if source.mask is None
        else source.mask
        for source in sources
    ]
    return torch.cat(masks, 1)
