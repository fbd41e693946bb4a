"""Attention after the decoder step: the new state is the query, the context goes to the output.

Luong, Pham & Manning, 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3, equation 5; input feeding in section 3.3.

Deviations: one layer of GRU by default; the paper has `cell=lstm,layers=4`. All layers start from
the same squashed summary, cells from zero.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.capabilities import Capability
from bench.api.combiner import AttachSlot
from bench.api.decoder import Decoder, DecoderSizes, DecoderState, Steps
from bench.api.registry import Citation, register
from bench.api.source import Memory, leaf
from bench.api.trace import Mode
from tasks.backbones.precision import product_of_columns
from tasks.backbones.recurrent_layers import RecurrentConfig, advance, begin, recurrent


@dataclass(frozen=True, kw_only=True)
class LuongConfig(RecurrentConfig):
    """Options of the Luong decoder."""

    input_feeding: bool = False
    """Whether the attentional state of a step is part of the next input."""


@register(
    "decoder",
    "luong",
    config=LuongConfig,
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3, equation 5",
    ),
)
class LuongDecoder(Decoder):
    """h~ = tanh(W [c; s]); without input feeding all queries are known at once."""

    gives = frozenset({"token_extras"})

    def __init__(self, config: LuongConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.input_feeding = config.input_feeding
        fed = sizes.hidden if config.input_feeding else 0
        self.hidden = sizes.hidden
        self.start = nn.Linear(sizes.summary, sizes.hidden)
        self.rnn = recurrent(config.cell, sizes.embedding + fed, sizes.hidden, layers=config.layers)
        self.out = nn.Linear(self.context_width + sizes.hidden, sizes.hidden, bias=False)
        self.output_layer_width = sizes.hidden

    @classmethod
    def given(cls, config: LuongConfig) -> frozenset[Capability]:
        """States are open-loop unless the context is fed back."""
        return cls.gives if config.input_feeding else cls.gives | {"open_loop"}

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Squash the summary into the first state."""
        hidden = torch.tanh(self.start(summary))
        kept = dict(begin(self.rnn, hidden))
        if self.input_feeding:
            kept["fed"] = torch.zeros_like(hidden)
        return DecoderState(hidden, self.start_slots(hidden, memories), kept)

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """One word."""
        return self._advance(x, memories, path, mode)

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """Query for all words at once where nothing is fed back."""
        if self.input_feeding:
            return super().run(x, memories, path, mode)
        return self._advance(x, memories, path, mode)

    def _advance(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """Advance the state, query with it, and keep h~ where it is fed back."""
        given = x
        if self.input_feeding:
            given = torch.cat((x, leaf(path.extra, "fed").unsqueeze(1)), -1)
        states, last, extra = advance(self.rnn, given, path.hidden, path.extra)
        context, attended = self.attend(states, memories, path.slots, mode, x)
        if self.input_feeding:
            extra["fed"] = self.output_layer(states, context, x).squeeze(1)
        after = DecoderState(last, tuple(answer.state for answer in attended), extra)
        return Steps(states, context, attended, after)

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The attentional state h~; the two halves of W broadcast separately."""
        split = self.context_width
        of_context = product_of_columns(self.out, context, slice(split))
        of_state = product_of_columns(self.out, states, slice(split, None))
        return torch.tanh(of_context + of_state)
