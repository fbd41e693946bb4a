"""Order in which the source is read: forward or backward.

Sutskever, Vinyals & Le, 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 3.3: x1 ... xS EOS becomes xS ... x1 EOS, the target stays.

Deviations: none.
"""

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.batch import Batch, Text
from bench.api.config import NoOptions
from bench.api.encoder import SourceOrder
from bench.api.registry import Citation, register


@register("source_order", "forward", title="source read forward")
class ForwardOrder(SourceOrder):
    """Nothing is moved."""

    def arrange(self, batch: Batch) -> Batch:
        """The same batch."""
        return batch


@register(
    "source_order",
    "reversed",
    title="source read backwards",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 3.3"
    ),
)
class ReversedOrder(SourceOrder):
    """Words are reversed in front of EOS; EOS and padding stay; doing it twice changes nothing."""

    removes = frozenset({"source_order"})

    def __init__(self, config: NoOptions, eos: int) -> None:
        super().__init__(config, eos)
        self.eos = eos

    def arrange(self, batch: Batch) -> Batch:
        """Reverse every source; gold and extended ids go with the first one."""
        if not batch.sources:
            return batch
        order = self.order(batch.sources[0])
        gold, extended = batch.gold, batch.extended
        if gold is not None:
            gold = gold.gather(2, order.unsqueeze(1).expand_as(gold))
        if extended is not None:
            extended = extended.gather(1, order)
        sources = tuple(self._turned(text) for text in batch.sources)
        return replace(batch, sources=sources, gold=gold, extended=extended)

    def _turned(self, text: Text) -> Text:
        order = self.order(text)
        segments, frames = text.segments, text.frames
        return replace(
            text,
            tokens=text.tokens.gather(1, order),
            segments=None if segments is None else segments.gather(1, order),
            frames=None if frames is None else frames.gather(1, order[..., None].expand_as(frames)),
        )

    def order(self, text: Text) -> Int[Tensor, "B S"]:
        """Which token comes to each position."""
        rows, width = text.tokens.shape
        place = torch.arange(width, device=text.tokens.device).expand(rows, -1)
        length = torch.full_like(place[:, :1], width)
        if text.mask is not None:
            length = text.mask.sum(1, keepdim=True)
        last = text.tokens.gather(1, (length - 1).clamp(min=0))
        words = length - ((last == self.eos) & (length > 0)).long()
        return torch.where(place < words, words - 1 - place, place)
