"""Attention with a gate: the old state decides how much of the context enters the next word.

Xu et al., 2015, "Show, attend and tell: neural image caption generation with visual attention",
https://arxiv.org/abs/1502.03044, sections 3.1.2 and 4.2.1 (soft attention), equations 1 and 7.

Deviations: first state and cell are squashed linear maps of the source's summary, one layer where
the paper leaves the number open.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot
from bench.api.config import Config
from bench.api.decoder import Decoder, DecoderSizes, DecoderState, Steps
from bench.api.registry import Citation, register
from bench.api.source import Memory, leaf
from bench.api.trace import Mode


@dataclass(frozen=True, kw_only=True)
class GatedConfig(Config):
    """Options of the gated decoder."""

    gate: bool = True
    """Whether the context is multiplied by beta = sigmoid(f(s)), one number a step."""


@register(
    "decoder",
    "gated",
    config=GatedConfig,
    citation=Citation(
        text="Xu et al., 2015",
        url="https://arxiv.org/abs/1502.03044",
        where="sections 3.1.2 and 4.2.1",
    ),
)
class GatedDecoder(Decoder):
    """z_t = beta_t c_t queried by s_{t-1}; s_t = LSTM([y; z_t], s_{t-1}); y + L s_t + M z_t.

    What is read out has the width of words; a loop over words.
    """

    gives = frozenset({"token_extras"})

    def __init__(self, config: GatedConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.start = nn.Linear(sizes.summary, 2 * sizes.hidden)
        self.cell = nn.LSTMCell(sizes.embedding + self.context_width, sizes.hidden)
        self.gate = nn.Linear(sizes.hidden, 1) if config.gate else None
        self.of_state = nn.Linear(sizes.hidden, sizes.embedding)
        self.of_context = nn.Linear(self.context_width, sizes.embedding, bias=False)
        self.output_layer_width = sizes.embedding

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Squash the summary into state and cell."""
        hidden, cell = torch.tanh(self.start(summary)).chunk(2, -1)
        return DecoderState(hidden, self.start_slots(hidden, memories), {"cell": cell})

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """Query with the old state, gate the context, then advance."""
        query = path.hidden.unsqueeze(1)
        context, attended = self.attend(query, memories, path.slots, mode, x)
        if self.gate is not None:
            context = torch.sigmoid(self.gate(query)) * context
        given = torch.cat((x, context), -1).squeeze(1)
        hidden, cell = self.cell(given, (path.hidden, leaf(path.extra, "cell")))
        after = DecoderState(hidden, tuple(answer.state for answer in attended), {"cell": cell})
        return Steps(hidden.unsqueeze(1), context, attended, after)

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """E y + L_h s + L_z z, which the vocabulary is read off."""
        return embedded + self.of_state(states) + self.of_context(context)
