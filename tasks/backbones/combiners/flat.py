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

    In a residual block every U is the identity. The states of a source follow the last real one of
    the source before it, and the padding of all sources is behind them, so that a place does not
    depend on how long the other examples of a batch are. Weights are in the order of these places:
    those of the first source are where its states are, those of the others follow row by row.
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
        """Put the projected sources one behind the other, each behind the last real state."""
        found = [p(states) for p, (states, _) in zip(self.project, sources, strict=True)]
        joined, mask = torch.cat(found, 1), _joint_mask(sources)
        if mask is not None and len(sources) > 1:
            order = _padding_last(sources)
            joined = joined.take_along_dim(order.unsqueeze(-1), 1)
            mask = mask.take_along_dim(order, 1)
        return (self.slots[0].prepare(joined, mask),)

    def arrange(self, batch: Batch) -> Batch:
        """Positions of the other sources are aligned with nothing."""
        return batch.joined()


def _joint_mask(sources: tuple[States, ...]) -> Bool[Tensor, "B S"] | None:
    if all(mask is None for _, mask in sources):
        return None
    return torch.cat([_written(one) for one in sources], 1)


def _written(source: States) -> Bool[Tensor, "B S"]:
    """Which states of one source are real."""
    if source.mask is not None:
        return source.mask
    return torch.ones_like(source.found[..., 0], dtype=torch.bool)


def _padding_last(sources: tuple[States, ...]) -> Int[Tensor, "B S"]:
    """Which of the states one behind the other comes to each place.

    What is hidden in front of a real state of its own source, as by a rationale, stays there.
    """
    # true up to the last real state of each source
    kept = [_written(one).flip(1).cumsum(1).flip(1) > 0 for one in sources]
    padded = ~torch.cat(kept, 1)
    # every place of padding is sorted behind all others, and no two are equal
    place = torch.arange(padded.shape[1], device=padded.device)
    return (place + padded.shape[1] * padded).argsort(1)
