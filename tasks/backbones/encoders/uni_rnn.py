"""Forward recurrent encoder: each state knows its token and what came before.

Luong et al., 2015, https://arxiv.org/abs/1508.04025, section 2 (four layers of LSTM there).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.encoder import Encoded, Encoder
from bench.api.registry import register
from tasks.backbones.encoders.masked_states import kept, mean
from tasks.backbones.recurrent_layers import RecurrentConfig, Summary, recurrent


@dataclass(frozen=True, kw_only=True)
class UniRnnConfig(RecurrentConfig):
    """Options of the forward encoder."""

    summary: Summary = "last"
    """What starts a decoder: the last real state, or the mean of all."""


@register("encoder", "uni_rnn", config=UniRnnConfig, title="forward recurrent encoder")
class UniRnnEncoder(Encoder):
    """From left to right; right padding cannot reach real states."""

    gives = frozenset({"online"})

    def __init__(self, config: UniRnnConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.output_width = hidden
        self.summary_width = hidden
        self.averages = config.summary == "mean"
        self.rnn = recurrent(config.cell, embedding_width, hidden, layers=config.layers)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Run over the tokens; the summary is the state of the last real one, or the mean."""
        states, _ = self.rnn(x)
        if self.averages:
            return Encoded(states, mask, mean(kept(states, mask), mask))
        if mask is None:
            return Encoded(states, None, states[:, -1])
        end = (mask.sum(1) - 1).clamp(min=0)
        summary = states[torch.arange(len(end), device=end.device), end]
        return Encoded(states, mask, summary)
