"""Bidirectional GRU encoder: each state knows its token and both contexts.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, section 3.2.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bench.api.backbone import Encoded, Encoder
from bench.api.config import NoOptions
from bench.api.errors import InvalidConfig
from bench.api.registry import register


@register("encoder", "birnn", title="bidirectional GRU encoder")
class BiRnnEncoder(Encoder):
    """Two GRUs of half the hidden width each; their states are concatenated."""

    def __init__(self, config: NoOptions, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        if hidden % 2:
            raise InvalidConfig(f"birnn: hidden must be even, got {hidden}.")
        self.output_width = hidden
        self.summary_width = hidden
        self.rnn = nn.GRU(embedding_width, hidden // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Run both ways over the real tokens; the summary joins the two last states."""
        if mask is None:
            states, last = self.rnn(x)
        else:
            lengths = mask.sum(1).clamp(min=1).cpu()
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            run, last = self.rnn(packed)
            states, _ = pad_packed_sequence(run, batch_first=True, total_length=x.shape[1])
        return Encoded(states, mask, torch.cat((last[0], last[1]), -1))
