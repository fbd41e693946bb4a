"""One softmax over the positions of all sources: they compete for the same attention.

Libovický & Helcl, 2017, "Attention strategies for multi-source sequence-to-sequence learning",
https://arxiv.org/abs/1704.06567 (flat attention combination). In a transformer: Libovický, Helcl &
Mareček, 2018, "Input combination strategies for multi-source Transformer decoder",
https://arxiv.org/abs/1811.04716, section 3, where residual connections hold all states in one
space, so that nothing is projected into a common one.

Deviations: beneath a recurrent decoder each source is projected once, to the decoder's width, for
keys and values alike; the score's own key map follows, so keys still have their own matrix per
source.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from bench.api.batch import Batch
from bench.api.combiner import AttachSlot, Combiner, CombinerSizes, States
from bench.api.config import NoOptions
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.source import Memory


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
    """One slot over [U1 h1; U2 h2; ...]; its weights over all sources together sum to one.

    In a residual block every U is the identity.
    """

    # a position of another source has no word of the first one
    removes = frozenset({"source_tokens", "source_states"})

    def __init__(self, config: NoOptions, sizes: CombinerSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.project = nn.ModuleList(
            nn.Identity() if sizes.residual else nn.Linear(width, sizes.query, bias=False)
            for width in sizes.sources
        )

    def make_slots(self, sizes: CombinerSizes, attach: AttachSlot) -> tuple[Slot, ...]:
        """One for all sources."""
        return (attach(sizes.query, sizes.query),)

    def prepare(
        self, sources: tuple[States, ...], tokens: Int[Tensor, "B S"] | None
    ) -> tuple[Memory, ...]:
        """Put the projected sources one behind the other."""
        found = [p(states) for p, (states, _) in zip(self.project, sources, strict=True)]
        return (self.slots[0].prepare(torch.cat(found, 1), _joint_mask(sources)),)

    def arrange(self, batch: Batch) -> Batch:
        """Positions of the other sources are aligned with nothing."""
        return batch.joined()


def _joint_mask(sources: tuple[States, ...]) -> Bool[Tensor, "B S"] | None:
    if all(mask is None for _, mask in sources):
        return None
    masks = [
        torch.ones_like(states[..., 0], dtype=torch.bool) if mask is None else mask
        for states, mask in sources
    ]
    return torch.cat(masks, 1)
