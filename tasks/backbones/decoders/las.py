"""The speller: the last context enters the next state, which is the next query.

Chan, Jaitly, Le & Vinyals, 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211,
section 3.2, equations 6 to 8; sampling in training after Bengio et al., 2015,
https://arxiv.org/abs/1506.03099.

Deviations: all layers start from the squashed summary of the source, cells and the first context
from zero. The perceptron in front of the softmax has one hidden layer of tanh.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot
from bench.api.config import FloatRange, IntRange
from bench.api.decoder import Decoder, DecoderSizes, DecoderState, Steps
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.source import Memory, leaf
from bench.api.trace import Mode
from tasks.backbones.recurrent_layers import Cell, RecurrentConfig, advance, begin, recurrent


@dataclass(frozen=True, kw_only=True)
class LasConfig(RecurrentConfig):
    """Options of the speller."""

    cell: Cell = "lstm"
    """Long short-term memory as published, or gated recurrent unit."""
    layers: Annotated[int, IntRange(1, 4)] = 2
    """Layers, one above the other; the highest one is the query."""
    sampling: Annotated[float, FloatRange(0.0, 0.5)] = 0.1
    """Share of training inputs that are drawn from the network's own last prediction."""

    def __post_init__(self) -> None:
        """Check layers and share."""
        super().__post_init__()
        if not 0 <= self.sampling <= 1:
            raise InvalidConfig(f"las: sampling must lie between 0 and 1, got {self.sampling}.")


@register(
    "decoder",
    "las",
    config=LasConfig,
    citation=Citation(
        text="Chan et al., 2016",
        url="https://arxiv.org/abs/1508.01211",
        where="section 3.2, equations 6-8",
    ),
)
class LasDecoder(Decoder):
    """s_t = RNN([y; c_{t-1}], s_{t-1}); c_t queried by s_t; tanh(W [c; s]); a loop over words."""

    gives = frozenset({"token_extras"})

    def __init__(self, config: LasConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.sampling = config.sampling
        width = sizes.embedding + self.context_width
        self.start = nn.Linear(sizes.summary, sizes.hidden)
        self.rnn = recurrent(config.cell, width, sizes.hidden, layers=config.layers)
        self.of_state = nn.Linear(sizes.hidden, sizes.hidden)
        self.of_context = nn.Linear(self.context_width, sizes.hidden, bias=False)
        self.output_layer_width = sizes.hidden

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Squash the summary into every layer; the first context is zero."""
        hidden = torch.tanh(self.start(summary))
        heard = hidden.new_zeros(len(hidden), 1, self.context_width)
        kept = {**begin(self.rnn, hidden), "heard": heard}
        return DecoderState(hidden, self.start_slots(hidden, memories), kept)

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """Advance with word and last context, then query."""
        given = torch.cat((x, leaf(path.extra, "heard")), -1)
        states, hidden, kept = advance(self.rnn, given, path.hidden, path.extra)
        context, attended = self.attend(states, memories, path.slots, mode, x)
        kept["heard"] = context
        after = DecoderState(hidden, tuple(answer.state for answer in attended), kept)
        return Steps(states, context, attended, after)

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The perceptron's hidden layer."""
        return torch.tanh(self.of_state(states) + self.of_context(context))
