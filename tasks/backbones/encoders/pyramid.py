"""Pyramid of bidirectional layers: each one reads two states of the layer below at a time.

Chan, Jaitly, Le & Vinyals, 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211,
section 3.1 (the listener), equation 4.

Deviations: a length that is odd gets one zero frame, which counts as real exactly where its
neighbor does.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.config import Config, IntRange
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from tasks.backbones.recurrent_layers import Cell, encode, recurrent


@dataclass(frozen=True, kw_only=True)
class PyramidConfig(Config):
    """Options of the pyramid."""

    layers: Annotated[int, IntRange(1, 4)] = 3
    """Layers that halve the length, above one that does not."""
    cell: Cell = "lstm"
    """Long short-term memory as published, or gated recurrent unit."""

    def __post_init__(self) -> None:
        """Check the number of layers."""
        if self.layers < 1:
            raise InvalidConfig(
                f"pyramid: layers must be at least 1, got {self.layers}; without any it is birnn."
            )


@register(
    "encoder",
    "pyramid",
    config=PyramidConfig,
    title="pyramid of bidirectional layers",
    citation=Citation(
        text="Chan et al., 2016", url="https://arxiv.org/abs/1508.01211", where="section 3.1"
    ),
)
class PyramidEncoder(Encoder):
    """h_i = BRNN(h_{i-1}, [g_{2i}; g_{2i+1}]); S tokens become ceil(S / 2^layers) states."""

    removes = frozenset({"source_tokens", "source_states"})

    def __init__(self, config: PyramidConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        if hidden % 2:
            raise InvalidConfig(f"pyramid: hidden must be even, got {hidden}.")
        self.stride = 2**config.layers
        self.output_width = hidden
        self.summary_width = hidden
        self.backward = range(hidden // 2, hidden)
        widths = [embedding_width] + [2 * hidden] * config.layers
        self.layers = nn.ModuleList(
            recurrent(config.cell, width, hidden // 2, both_ways=True) for width in widths
        )

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Halve the length before every layer but the first."""
        states, last = encode(self.layers[0], x, mask)
        for layer in self.layers[1:]:
            states, mask = in_pairs(states, mask)
            states, last = encode(layer, states, mask)
        return Encoded(states, mask, torch.cat((last[0], last[1]), -1))


def in_pairs(
    states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"] | None
) -> tuple[Float[Tensor, "B n D2"], Bool[Tensor, "B n"] | None]:
    """Two neighbors side by side; a pair is real where one of them is."""
    odd = states.shape[1] % 2
    pairs = functional.pad(states, (0, 0, 0, odd)).unflatten(1, (-1, 2)).flatten(2)
    if mask is None:
        return pairs, None
    return pairs, functional.pad(mask, (0, odd)).unflatten(1, (-1, 2)).any(-1)
