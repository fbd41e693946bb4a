"""Sequence to label: one learned query pools the encoded tokens.

Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, section 2.2 (word attention), with any score.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts, Encoder, Mode, OutputSizes, Trace
from bench.api.config import Config, IntRange
from bench.api.errors import Refused
from bench.api.registry import register
from bench.api.resolve import SlotPlace
from bench.api.selector import Selector
from bench.api.task import Batch
from bench.api.variant import Slot


@dataclass(frozen=True, kw_only=True)
class PoolingConfig(Config):
    """Options of the pooling classifier."""

    embedding: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Width of word embeddings, of the query and of encoder states."""
    encoder: Selector = Selector("embed")
    """How token states are made; `embed` leaves all context to the attention."""


@register("backbone", "pooling", config=PoolingConfig, title="learned query over encoded tokens")
class Pooling(Backbone):
    """The pooled vector alone is classified, so the attention must find what matters."""

    slots = ("pool",)

    def __init__(self, config: PoolingConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.embedding
        self.embedding = nn.Embedding(sizes.source_vocabs[0], width, padding_idx=0)
        self.encoder: Encoder = registry.make("encoder", config.encoder, width, width)
        self.query = nn.Parameter(torch.randn(width) * width**-0.5)
        self.slot = parts.attach(
            SlotPlace(
                regime="pool",
                query_width=width,
                source_width=self.encoder.output_width,
                head="raw",
                source_vocab=sizes.source_vocabs[0],
                given=parts.facts,
            )
        )
        self.project = nn.Linear(self.slot.output_width, sizes.target_vocab)
        self.output = parts.output(
            OutputSizes(sizes.target_vocab, width, self.slot.output_width, width, sizes.unk)
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Ask once."""
        if batch.targets.shape[1] != 1:
            raise Refused("pooling gives one answer a sequence, and this task asks for several.")
        text = batch.sources[0]
        encoded = self.encoder(self.embedding(text.tokens), text.mask)
        memory = self.slot.prepare(encoded.states, encoded.mask, batch.extended)
        query = self.query.expand(text.tokens.shape[0], 1, -1)
        state = self.slot.start(memory, query)
        context, attended = self.slot.attend(query, memory, state, **mode.call())
        return Trace(query, context, query, (attended,), (memory,))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Classify the pooled vector."""
        return self.project(context)

    def variant_slots(self) -> tuple[Slot, ...]:
        """The one slot."""
        return (self.slot,)
