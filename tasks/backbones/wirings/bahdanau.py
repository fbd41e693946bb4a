"""Attention between decoder steps: the old state asks, the context goes into the next state.

Bahdanau, Cho & Bengio, 2015, "Neural machine translation by jointly learning to align and
translate", https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.2.2.

Deviations: the first state comes from the whole summary, not from the backward half alone.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.backbone import AttachSlot, Mode, Path, Steps, Wiring, WiringSizes
from bench.api.config import Config
from bench.api.registry import Citation, register
from bench.api.source import Memory


@dataclass(frozen=True, kw_only=True)
class BahdanauConfig(Config):
    """Options of the Bahdanau wiring."""

    readout_state: Literal["prev", "curr"] = "prev"
    """State that the readout sees: before the step, as published, or after it."""


@register(
    "wiring",
    "bahdanau",
    config=BahdanauConfig,
    citation=Citation(
        text="Bahdanau et al., 2015", url="https://arxiv.org/abs/1409.0473", where="section 3.1"
    ),
)
class BahdanauWiring(Wiring):
    """s_t = GRU([y; c_t], s_{t-1}) with c_t asked by s_{t-1}; maxout readout; a loop over words."""

    gives = frozenset({"token_extras"})

    def __init__(self, config: BahdanauConfig, sizes: WiringSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.reads_previous = config.readout_state == "prev"
        self.start = nn.Linear(sizes.summary, sizes.hidden)
        self.cell = nn.GRUCell(sizes.embedding + self.context_width, sizes.hidden)
        self.of_state = nn.Linear(sizes.hidden, 2 * sizes.hidden)
        self.of_word = nn.Linear(sizes.embedding, 2 * sizes.hidden, bias=False)
        self.of_context = nn.Linear(self.context_width, 2 * sizes.hidden, bias=False)
        self.readout_width = sizes.hidden

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> Path:
        """Squash the summary into the first state."""
        hidden = torch.tanh(self.start(summary))
        return Path(hidden, self.start_slots(hidden, memories), {})

    def step(
        self, x: Float[Tensor, "B 1 De"], memories: tuple[Memory, ...], path: Path, mode: Mode
    ) -> Steps:
        """Ask with the old state, then advance it with word and context."""
        query = path.hidden.unsqueeze(1)
        context, attended = self.attend(query, memories, path.slots, mode, x)
        hidden = self.cell(torch.cat((x, context), -1).squeeze(1), path.hidden)
        after = Path(hidden, tuple(answer.state for answer in attended), {})
        seen = query if self.reads_previous else hidden.unsqueeze(1)
        return Steps(seen, context, attended, after)

    def readout(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Maxout over pairs of U s + V y + C c."""
        joined = self.of_state(states) + self.of_word(embedded) + self.of_context(context)
        return joined.unflatten(-1, (-1, 2)).amax(-1)
