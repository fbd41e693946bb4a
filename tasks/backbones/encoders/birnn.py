"""Bidirectional recurrent encoder: each state knows its token and both contexts.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, section 3.2.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.config import Config
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import InvalidConfig
from bench.api.registry import register
from tasks.backbones.encoders.masked_states import mean
from tasks.backbones.recurrent_layers import Cell, Summary, encode, recurrent


@dataclass(frozen=True, kw_only=True)
class BiRnnConfig(Config):
    """Options of the bidirectional encoder."""

    cell: Cell = "gru"
    """Gated recurrent unit, or long short-term memory."""
    summary: Summary = "last"
    """What starts a decoder: the last state of each direction, or the mean of all states."""


@register("encoder", "birnn", config=BiRnnConfig, title="bidirectional recurrent encoder")
class BiRnnEncoder(Encoder):
    """Two recurrent networks of half the hidden width each; their states are concatenated."""

    def __init__(self, config: BiRnnConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        if hidden % 2:
            raise InvalidConfig(f"birnn: hidden must be even, got {hidden}.")
        self.output_width = hidden
        self.summary_width = hidden
        self.averages = config.summary == "mean"
        # half of a mean is no last state, from which a decoder starts
        self.backward = range(0) if self.averages else range(hidden // 2, hidden)
        self.rnn = recurrent(config.cell, embedding_width, hidden // 2, both_ways=True)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Run both ways over the real tokens; the summary joins their last states, or all."""
        states, last = encode(self.rnn, x, mask)
        summary = mean(states, mask) if self.averages else torch.cat((last[0], last[1]), -1)
        return Encoded(states, mask, summary)
