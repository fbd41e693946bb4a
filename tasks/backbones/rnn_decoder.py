"""Recurrent decoder without a source: the states of an LSTM attend to those before them.

Daniluk et al., 2017, "Frustratingly short attention spans in neural language modeling",
https://arxiv.org/abs/1702.04521, section 2.1 and equation 4. Pointer sentinel (Merity et al., 2017,
https://arxiv.org/abs/1609.07843) and neural cache (Grave et al., 2017,
https://arxiv.org/abs/1612.04426) are outputs over the same states; with `last_state` in the slot
each state reads itself alone, and the network is an LSTM without attention.

Deviations: a state may attend to itself too, and sees all states so far, no window of them; states
enter the attention through the projections of its heads.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.config import FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace
from tasks.backbones.dropout import Dropout
from tasks.backbones.output_sizes import output_sizes
from tasks.backbones.recurrent_layers import Cell, RecurrentConfig, encode, recurrent
from tasks.backbones.source_embedding import input_frames, with_frames


@dataclass(frozen=True, kw_only=True)
class RnnDecoderConfig(RecurrentConfig):
    """Options of the recurrent decoder."""

    cell: Cell = "lstm"
    """Gated recurrent unit, or long short-term memory."""
    hidden: Annotated[int, IntRange(16, 1024, log=True)] = 64
    """Width of states."""
    embedding: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Width of embeddings."""
    heads: Annotated[int, IntRange(1, 16)] = 1
    """Heads of a slot whose variant does not choose its own."""
    dropout: Annotated[float, FloatRange(0.0, 0.5), Legal(0, 1)] = 0.0
    """Share of embedding and output layer units dropped in training."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        super().__post_init__()
        if min(self.hidden, self.embedding, self.heads) < 1 or self.hidden % self.heads:
            raise InvalidConfig(
                "rnn_decoder: hidden and embedding must be at least 1 and heads divide hidden, "
                f"got {self.hidden}, {self.embedding}, {self.heads}."
            )


@register(
    "backbone",
    "rnn_decoder",
    config=RnnDecoderConfig,
    title="recurrent decoder that attends to its past",
    citation=Citation(
        text="Daniluk et al., 2017", url="https://arxiv.org/abs/1702.04521", where="section 2.1"
    ),
)
class RnnDecoder(Backbone):
    """h_t = LSTM(x_t, h_{t-1}); c_t reads h_1 ... h_t; words are read off tanh(W [c_t; h_t])."""

    slots = ("causal",)
    sized_by = ("hidden", "embedding")
    reads_frames = True

    def __init__(self, config: RnnDecoderConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, hidden = parts.sizes, config.hidden
        self.dropout = Dropout(config.dropout)
        self.embedding = nn.Embedding(sizes.target_vocab, config.embedding)
        self.frames = input_frames(sizes, config.embedding)
        self.rnn = recurrent(config.cell, config.embedding, hidden, layers=config.layers)
        self.slot: Slot = parts.attach(
            SlotPlace(
                regime="causal",
                query_width=hidden,
                source_width=hidden,
                head=f"multi[heads={config.heads}]",
                given=parts.capabilities,
            )
        )
        self.of_context = nn.Linear(self.slot.output_width, hidden, bias=False)
        self.of_state = nn.Linear(hidden, hidden)
        self.project = nn.Linear(hidden, sizes.target_vocab)
        context = self.slot.output_width
        self.output = parts.output(
            output_sizes(sizes, states=hidden, context=context, embedded=config.embedding)
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run the whole sequence; states first, then the attention among them."""
        embedded = with_frames(self.embedding(batch.inputs), self.frames, batch)
        states, _ = encode(self.rnn, self.dropout(embedded), None)
        placed = self.slot.variant.embed(states, 0)
        start = self.slot.start(None, placed)
        own = (placed, None, None)
        context, attended = self.slot.attend(placed, None, start, own=own, **mode.call())
        return Trace(states, context, embedded, (attended,), (None,))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Output layer and vocabulary projection."""
        read = torch.tanh(self.of_context(context) + self.of_state(states))
        return self.project(self.dropout(read))

    def variant_slots(self) -> tuple[Slot, ...]:
        """The one slot."""
        return (self.slot,)
