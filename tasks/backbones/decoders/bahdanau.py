"""Attention between decoder steps: the old state is the query, the context enters the next state.

Bahdanau, Cho & Bengio, 2015, "Neural machine translation by jointly learning to align and
translate", https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.2.2.

Deviations: by default the first state comes from the whole summary, which serves every encoder
(the paper has `start=backward`), and there are as many maxout units as units of the state.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot
from bench.api.config import Choices, Config, IntRange
from bench.api.decoder import Decoder, DecoderSizes, DecoderState, Steps
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register
from bench.api.source import Memory
from bench.api.trace import Mode


@dataclass(frozen=True, kw_only=True)
class BahdanauConfig(Config):
    """Options of the Bahdanau decoder."""

    output_layer_state: Annotated[Literal["prev", "curr"], Choices(("prev", "curr"))] = "prev"
    """State that the output layer sees: before the step, as published, or after it."""
    start: Annotated[Literal["summary", "backward"], Choices(("summary", "backward"))] = "summary"
    """Source of the first state: the whole summary, or its backward half, as published, where that
    is a last state."""
    maxout: Annotated[int, IntRange(0, 1024)] = 0
    """Maxout units of the output layer; 0 for as many as the state has."""

    def __post_init__(self) -> None:
        """Check the number of units."""
        if self.maxout < 0:
            raise InvalidConfig(f"bahdanau: maxout must be at least 0, got {self.maxout}.")


@register(
    "decoder",
    "bahdanau",
    config=BahdanauConfig,
    citation=Citation(
        text="Bahdanau et al., 2015", url="https://arxiv.org/abs/1409.0473", where="section 3.1"
    ),
)
class BahdanauDecoder(Decoder):
    """s_t = GRU([y; c_t], s_{t-1}), c_t queried by s_{t-1}; maxout output; a loop over words."""

    gives = frozenset({"token_extras"})

    def __init__(self, config: BahdanauConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.reads_previous = config.output_layer_state == "prev"
        self.starts_from = sizes.backward if config.start == "backward" else None
        if self.starts_from == ():
            raise Refused(
                "bahdanau: start=backward needs the last state of an encoder that reads backwards "
                "too, such as birnn, and summaries=basic, by which a decoder starts from it."
            )
        self.start = nn.Linear(len(self.starts_from or range(sizes.summary)), sizes.hidden)
        self.cell = nn.GRUCell(sizes.embedding + self.context_width, sizes.hidden)
        self.output_layer_width = config.maxout or sizes.hidden
        units = 2 * self.output_layer_width
        self.of_state = nn.Linear(sizes.hidden, units)
        self.of_word = nn.Linear(sizes.embedding, units, bias=False)
        self.of_context = nn.Linear(self.context_width, units, bias=False)

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Squash the summary into the first state."""
        if self.starts_from is not None:
            summary = summary[:, list(self.starts_from)]
        hidden = torch.tanh(self.start(summary))
        return DecoderState(hidden, self.start_slots(hidden, memories), {})

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """Query with the old state, then advance it with word and context."""
        query = path.hidden.unsqueeze(1)
        context, attended = self.attend(query, memories, path.slots, mode, x)
        hidden = self.cell(torch.cat((x, context), -1).squeeze(1), path.hidden)
        after = DecoderState(hidden, tuple(answer.state for answer in attended), {})
        seen = query if self.reads_previous else hidden.unsqueeze(1)
        return Steps(seen, context, attended, after)

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Maxout over pairs of U s + V y + C c."""
        joined = self.of_state(states) + self.of_word(embedded) + self.of_context(context)
        return joined.unflatten(-1, (-1, 2)).amax(-1)
