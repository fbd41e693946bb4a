"""Sequence to label: one query, learned or the last state, pools the encoded tokens.

Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, section 2.2 (word attention), with any score. The last state as
query is the usual way to classify what a recurrent network has read (Rajkomar et al., 2018,
"Scalable and accurate deep learning with electronic health records",
https://arxiv.org/abs/1801.07860, is one of that kind).
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api import registry
from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.config import Choices, Config, IntRange
from bench.api.encoder import ENCODERS, Encoded
from bench.api.errors import Refused
from bench.api.registry import register
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace
from tasks.backbones.output_sizes import output_sizes
from tasks.backbones.source_embedding import embed_source, source_table


@dataclass(frozen=True, kw_only=True)
class PoolingConfig(Config):
    """Options of the pooling classifier."""

    embedding: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Width of word embeddings, of a learned query and of encoder states."""
    encoder: Selector = Selector("embed")
    """How token states are made; `embed` leaves all context to the attention."""
    query: Annotated[Literal["learned", "last"], Choices(("learned", "last"))] = "learned"
    """The query: one vector for all texts, or the state of the last real token."""


@register("backbone", "pooling", config=PoolingConfig, title="one query over encoded tokens")
class Pooling(Backbone):
    """The pooled vector alone is classified, so the attention must find what matters."""

    slots = ("pool",)
    sized_by: ClassVar[tuple[str, ...]] = ("embedding",)
    gives = frozenset({"source_states"})
    reads_frames = True
    gives_numbers = True

    def __init__(self, config: PoolingConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.embedding
        self.embedding = source_table(sizes, 0, width)
        self.encoder = registry.make(ENCODERS, config.encoder, width, width)
        self.query: nn.Parameter | None = None
        if config.query == "learned":
            self.query = nn.Parameter(torch.randn(width) * width**-0.5)
        asking = width if self.query is not None else self.encoder.output_width
        self.slot = parts.attach(
            SlotPlace(
                regime="pool",
                query_width=asking,
                source_width=self.encoder.output_width,
                head="raw",
                source_vocab=sizes.source_vocabs[0],
                given=parts.capabilities,
            )
        )
        self.project = nn.Linear(self.slot.output_width, sizes.target_vocab)
        self.output = parts.output(
            output_sizes(
                sizes,
                states=asking,
                context=self.slot.output_width,
                embedded=asking,
                source=self.encoder.output_width,
            )
        )

    def arrange(self, batch: Batch) -> Batch:
        """Fold the gold as the encoder does its states."""
        return batch if batch.arranged else replace(self.encoder.arrange(batch), arranged=True)

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """One query per text."""
        batch = self.arrange(batch)
        if batch.targets.shape[1] != 1:
            raise Refused("pooling gives one answer per sequence, and this task has several.")
        text = batch.sources[0]
        embedded = embed_source(self.embedding, text)
        encoded = self.encoder.read(embedded, text.mask, batch, mode)
        memory = self.slot.prepare(encoded.states, encoded.mask, batch.extended)
        query = self._ask(encoded)
        state = self.slot.start(memory, query)
        context, attended = self.slot.attend(query, memory, state, **mode.call())
        return Trace(query, context, query, (attended,), (memory,), (encoded.terms,))

    def _ask(self, encoded: Encoded) -> Float[Tensor, "B 1 D"]:
        """The learned vector, or the state of each row's last real token."""
        rows, length = encoded.states.shape[:2]
        if self.query is not None:
            return self.query.expand(rows, 1, -1)
        if encoded.mask is None:
            return encoded.states[:, length - 1 :]
        # an encoder that selects tokens leaves a mask with holes
        place = torch.arange(length, device=encoded.mask.device)
        end = torch.where(encoded.mask, place, 0).amax(1)
        return encoded.states[torch.arange(rows, device=end.device), end].unsqueeze(1)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Classify the pooled vector."""
        return self.project(context)

    def variant_slots(self) -> tuple[Slot, ...]:
        """The one slot."""
        return (self.slot,)
