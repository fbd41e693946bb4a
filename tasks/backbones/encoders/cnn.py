"""Convolutional encoder: each state knows its token and a window around it.

Gehring et al., 2017, "A convolutional encoder model for neural machine translation",
https://arxiv.org/abs/1611.02344, section 3; gated linear units as in Gehring et al., 2017,
https://arxiv.org/abs/1705.03122, section 3.2.

Deviations: one stack makes keys and values, where the paper has one for each; residuals are added
without the factor sqrt(1/2).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.config import Choices, Config, IntRange
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from tasks.backbones.encoders.input_positions import Kind, positions
from tasks.backbones.encoders.masked_states import kept, mean


@dataclass(frozen=True, kw_only=True)
class CnnConfig(Config):
    """Options of the convolutional encoder."""

    layers: Annotated[int, IntRange(1, 8)] = 3
    """Convolutions, one above the other."""
    kernel: Annotated[int, IntRange(1, 9)] = 3
    """Tokens that one convolution sees; odd, so that both sides count alike."""
    unit: Annotated[Literal["glu", "tanh"], Choices(("glu", "tanh"))] = "glu"
    """Gated linear unit, or hyperbolic tangent."""
    positions: Kind = "learned"
    """Positions that are added to tokens; convolutions alone know only neighbors."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.layers < 1 or self.kernel < 1 or self.kernel % 2 == 0:
            raise InvalidConfig(
                "cnn: layers must be at least 1 and kernel a positive odd number, "
                f"got {self.layers}, {self.kernel}."
            )


@register(
    "encoder",
    "cnn",
    config=CnnConfig,
    title="convolutional encoder",
    citation=Citation(
        text="Gehring et al., 2017", url="https://arxiv.org/abs/1611.02344", where="section 3"
    ),
)
class CnnEncoder(Encoder):
    """x + unit(conv(x)), layer by layer, without pooling: a state sees 1 + l (k - 1) tokens.

    The summary is the mean state. All tokens of a layer at once; time O(l S k D^2).
    """

    def __init__(self, config: CnnConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.output_width = hidden
        self.summary_width = hidden
        self.gated = config.unit == "glu"
        self.positions = positions(config.positions, embedding_width)
        self.enter = nn.Linear(embedding_width, hidden)
        made = 2 * hidden if self.gated else hidden
        self.layers = nn.ModuleList(
            nn.Conv1d(hidden, made, config.kernel, padding=config.kernel // 2)
            for _ in range(config.layers)
        )

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Convolve; padded positions are zero before every layer, as outside of the sentence."""
        if self.positions is not None:
            x = self.positions.embed(x, 0)
        states = kept(self.enter(x), mask)
        for layer in self.layers:
            made = layer(states.transpose(1, 2)).transpose(1, 2)
            made = functional.glu(made, -1) if self.gated else torch.tanh(made)
            states = kept(states + made, mask)
        return Encoded(states, mask, mean(states, mask))
