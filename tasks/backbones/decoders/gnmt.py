"""Deep decoder whose lowest layer asks: the context goes to all layers above it.

Wu et al., 2016, "Google's neural machine translation system: bridging the gap between human and
machine translation", https://arxiv.org/abs/1609.08144, section 3, equation 4 (attention), section
3.1 (residual connections) and section 3.3 (which layer asks).

Deviations: three layers by default where the paper has eight. All layers start from the same
squashed summary, cells from zero; the paper does not say from where. There is no dropout between
layers. The encoder is the backbone's.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.combiner import AttachSlot
from bench.api.config import Choices, IntRange
from bench.api.decoder import Decoder, DecoderSizes, DecoderState, Steps
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.source import Memory, Tree, branch, leaf
from bench.api.trace import Mode
from tasks.backbones.recurrent_layers import Cell, Kept, RecurrentConfig, advance, begin, recurrent

RESIDUAL_FROM = 2
"""The first layer, from zero, whose input is added to its output: the third from the bottom."""


@dataclass(frozen=True, kw_only=True)
class GnmtConfig(RecurrentConfig):
    """Options of the deep decoder."""

    cell: Cell = "lstm"
    """Gated recurrent unit, or long short-term memory."""
    layers: Annotated[int, IntRange(2, 8)] = 3
    """Layers, one above the other; the lowest asks, and the others read the context."""
    residual: Annotated[bool, Choices((True, False))] = True
    """Whether layers from the third on add their input, without the context, to their output; two
    layers have no third."""

    def __post_init__(self) -> None:
        """Check the number of layers."""
        if self.layers < 2:
            raise InvalidConfig(f"gnmt: layers must be at least 2, got {self.layers}.")


@register(
    "decoder",
    "gnmt",
    config=GnmtConfig,
    citation=Citation(
        text="Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 3"
    ),
)
class GnmtDecoder(Decoder):
    """h1_t = LSTM(y_t, h1_{t-1}); c_t is asked by h1_{t-1}; x_l = LSTM([x_{l-1}; c_t]) + x_{l-1}.

    The lowest layer reads no context, so all queries are known at once under teacher forcing.
    """

    gives = frozenset({"token_extras"})

    def __init__(self, config: GnmtConfig, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__(config, sizes, attach)
        hidden = sizes.hidden
        self.residual = config.residual
        self.start = nn.Linear(sizes.summary, hidden)
        self.lowest = recurrent(config.cell, sizes.embedding, hidden)
        self.upper = nn.ModuleList(
            recurrent(config.cell, hidden + self.context_width, hidden)
            for _ in range(config.layers - 1)
        )
        self.output_layer_width = hidden

    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """Squash the summary into the first state of every layer."""
        hidden = torch.tanh(self.start(summary))
        kept: Kept = {"lowest": begin(self.lowest, hidden)}
        for index, layer in enumerate(self._layers()):
            kept[f"upper{index}"] = {"hidden": hidden, **begin(layer, hidden)}
        return DecoderState(hidden, self.start_slots(hidden, memories), kept)

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """One word."""
        return self.run(x, memories, path, mode)

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """The lowest layer over all words, then the attention, then layer by layer."""
        states, last, lowest = advance(self.lowest, x, path.hidden, branch(path.extra, "lowest"))
        asking = torch.cat((path.hidden.unsqueeze(1), states[:, :-1]), 1)
        context, attended = self.attend(asking, memories, path.slots, mode, x)
        kept: Kept = {"lowest": lowest}
        for index, layer in enumerate(self._layers()):
            name = f"upper{index}"
            states, kept[name] = self._above(
                index + 1, layer, states, context, branch(path.extra, name)
            )
        slots = tuple(answer.state for answer in attended)
        return Steps(states, context, attended, DecoderState(last, slots, kept))

    def _above(
        self,
        index: int,
        layer: nn.GRU | nn.LSTM,
        below: Float[Tensor, "B T D"],
        context: Float[Tensor, "B T Dv"],
        kept: Tree,
    ) -> tuple[Float[Tensor, "B T D"], Tree]:
        """One layer that reads the one below it and the context."""
        given = torch.cat((below, context), -1)
        states, last, after = advance(layer, given, leaf(kept, "hidden"), kept)
        if self.residual and index >= RESIDUAL_FROM:
            states = states + below
        return states, {"hidden": last, **after}

    def _layers(self) -> list[nn.GRU | nn.LSTM]:
        return [layer for layer in self.upper if isinstance(layer, nn.GRU | nn.LSTM)]

    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The top layer itself, which has read the context."""
        return states
