"""A decoder whose memory is a tape of all its states, with attention to the source after or inside.

Cheng, Dong & Lapata, 2016, "Long short-term memory-networks for machine reading",
https://arxiv.org/abs/1601.06733, section 3.1 (intra-attention) and 3.3 (shallow and deep fusion).

Deviations: the first entry of the tape is the state that the source's summary gives, with an empty
cell. The encoder may be of any kind; for deep fusion a linear map of what was attended to
replaces the cell of an encoder that has a tape. Shallow fusion reads out as Luong et al. do.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.capabilities import Capability
from bench.api.combiner import AttachSlot
from bench.api.config import Choices, Config, IntRange
from bench.api.decoder import Decoder, DecoderSizes, DecoderState, Steps
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.source import Memory, Tree, leaf
from bench.api.trace import Mode
from tasks.backbones.precision import product_of_columns


@dataclass(frozen=True, kw_only=True)
class LstmnDecoderConfig(Config):
    """Options of the decoder with a tape."""

    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units of the attention to the tape."""
    fusion: Annotated[Literal["shallow", "deep"], Choices(("shallow", "deep"))] = "shallow"
    """Whether the new state queries the source, or the context enters the cell by a gate."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"lstmn: width must be at least 1, got {self.width}.")


@register(
    "decoder",
    "lstmn",
    config=LstmnDecoderConfig,
    citation=Citation(
        text="Cheng et al., 2016",
        url="https://arxiv.org/abs/1601.06733",
        where="sections 3.1 and 3.3",
    ),
)
class LstmnDecoder(Decoder):
    """LSTM gates over [r; x], where (r, m) are the states and cells of the tape under a softmax.

    Shallow: h~ = tanh(W [context; h]). Deep: c = g * A context + f * m + i * fresh, read off h.
    One word after the other; time O(T^2) beside the attention.
    """

    gives = frozenset({"token_extras"})

    def __init__(self, config: LstmnDecoderConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        self.deep = config.fusion == "deep"
        hidden, context = sizes.hidden, self.context_width
        self.start = nn.Linear(sizes.summary, hidden)
        self.of_tape = nn.Linear(hidden, config.width, bias=False)
        self.of_word = nn.Linear(sizes.embedding, config.width)
        self.of_recalled = nn.Linear(hidden, config.width, bias=False)
        self.v = nn.Linear(config.width, 1, bias=False)
        self.gates = nn.Linear(hidden + sizes.embedding, 4 * hidden)
        if self.deep:
            self.ask = nn.Linear(sizes.embedding + context, hidden)
            self.gate = nn.Linear(context + sizes.embedding, hidden)
            self.cell = nn.Linear(context, hidden, bias=False)
        else:
            self.out = nn.Linear(context + hidden, hidden, bias=False)
        self.output_layer_width = hidden

    @classmethod
    def given(cls, config: LstmnDecoderConfig) -> frozenset[Capability]:
        """States are open-loop unless the context enters the cell."""
        return cls.gives if config.fusion == "deep" else cls.gives | {"open_loop"}

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """A tape of one state, made from the summary."""
        hidden = torch.tanh(self.start(summary))
        first = hidden.unsqueeze(1)
        extra = {
            "hidden": first,
            "cell": torch.zeros_like(first),
            "tape": self.of_tape(first),
            "recalled": torch.zeros_like(first),
        }
        if self.deep:
            extra["context"] = hidden.new_zeros(len(hidden), 1, self.context_width)
        return DecoderState(hidden, self.start_slots(hidden, memories), extra)

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """One word."""
        if self.deep:
            return self._deep_step(x, memories, path, mode)
        return self.run(x, memories, path, mode)

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """Word by word; with shallow fusion the source is queried once for all of them."""
        if self.deep:
            return super().run(x, memories, path, mode)
        extra = path.extra
        for word in x.split(1, 1):
            extra = self._write(word, extra, None)
        states = leaf(extra, "hidden")[:, -x.shape[1] :]
        context, attended = self.attend(states, memories, path.slots, mode, x)
        after = DecoderState(states[:, -1], tuple(answer.state for answer in attended), extra)
        return Steps(states, context, attended, after)

    def _deep_step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        query = self.ask(torch.cat((x, leaf(path.extra, "context")), -1))
        context, attended = self.attend(query, memories, path.slots, mode, x)
        gate = torch.sigmoid(self.gate(torch.cat((context, x), -1)))
        extra = {**self._write(x, path.extra, gate * self.cell(context)), "context": context}
        state = leaf(extra, "hidden")[:, -1:]
        after = DecoderState(state[:, 0], tuple(answer.state for answer in attended), extra)
        return Steps(state, context, attended, after)

    def _write(
        self, x: Float[Tensor, "B 1 De"], extra: Tree, entering: Float[Tensor, "B 1 D"] | None
    ) -> dict[str, Tensor | Tree]:
        """Attend to the tape and write one more state and cell onto it."""
        hidden, cell, tape = (leaf(extra, name) for name in ("hidden", "cell", "tape"))
        asked = self.of_word(x) + self.of_recalled(leaf(extra, "recalled"))
        weights = on_tape(self.v(torch.tanh(tape + asked)))
        recalled, remembered = weights @ hidden, weights @ cell
        taken, kept, shown, fresh = self.gates(torch.cat((recalled, x), -1)).chunk(4, -1)
        now = torch.sigmoid(kept) * remembered + torch.sigmoid(taken) * torch.tanh(fresh)
        if entering is not None:
            now = now + entering
        state = torch.sigmoid(shown) * torch.tanh(now)
        return {
            "hidden": torch.cat((hidden, state), 1),
            "cell": torch.cat((cell, now), 1),
            "tape": torch.cat((tape, self.of_tape(state)), 1),
            "recalled": recalled,
        }

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The attentional state h~, or under deep fusion the state, which knows the context."""
        if self.deep:
            return states
        split = self.context_width
        of_context = product_of_columns(self.out, context, slice(split))
        of_state = product_of_columns(self.out, states, slice(split, None))
        return torch.tanh(of_context + of_state)


def on_tape(energy: Float[Tensor, "B n 1"]) -> Float[Tensor, "B 1 n"]:
    """Weights of everything on the tape."""
    return torch.softmax(energy, 1).mT
