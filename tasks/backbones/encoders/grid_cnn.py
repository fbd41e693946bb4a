"""Convolutions over a grid of patches: each state knows its patch, its neighbors and its position.

He et al., 2016, "Identity mappings in deep residual networks", https://arxiv.org/abs/1603.05027,
section 2; coordinates as channels are those of Liu et al., 2018, "An intriguing failing of
convolutional neural networks and the CoordConv solution", https://arxiv.org/abs/1807.03247. The
states are the annotation vectors of Xu et al., 2015, https://arxiv.org/abs/1502.03044, section
3.1.1.

Deviations: one convolution a block; layer normalization of the channels of a position instead of
batch normalization; no stride, so that the grid is kept; coordinates enter once.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch, Text
from bench.api.config import Config, IntRange
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.backbones.encoders.masked_states import kept, mean


@dataclass(frozen=True, kw_only=True)
class GridCnnConfig(Config):
    """Options of the convolutions over a grid."""

    layers: Annotated[int, IntRange(0, 8)] = 2
    """Residual convolutions of 3 by 3 positions."""
    coordinates: bool = True
    """Whether a position knows its row and column."""

    def __post_init__(self) -> None:
        """Check the depth."""
        if self.layers < 0:
            raise InvalidConfig(f"grid_cnn: layers must be at least 0, got {self.layers}.")


@register(
    "encoder",
    "grid_cnn",
    config=GridCnnConfig,
    title="convolutions over a picture",
    citation=Citation(
        text="He et al., 2016", url="https://arxiv.org/abs/1603.05027", where="section 2"
    ),
)
class GridCnnEncoder(Encoder):
    """x + conv(gelu(norm(x))), layer by layer: a state sees 2 l + 1 rows and columns.

    The summary is the mean state. Time O(l S D^2).
    """

    needs = frozenset({"grid"})

    def __init__(self, config: GridCnnConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.output_width = hidden
        self.summary_width = hidden
        self.coordinates = config.coordinates
        self.enter = nn.Linear(embedding_width + 2 * config.coordinates, hidden)
        self.blocks = GridBlocks(hidden, config.layers)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Refuse: a sequence of positions has no neighbors above and below."""
        raise Refused("grid_cnn reads pictures, and these positions come without rows and columns.")

    def read(
        self,
        x: Float[Tensor, "B S De"],
        mask: Bool[Tensor, "B S"] | None,
        batch: Batch,
        mode: Mode,
    ) -> Encoded:
        """Convolve over the grid of the first source; padding is zero before every layer."""
        grid = grid_of(batch.sources[0])
        if self.coordinates:
            x = torch.cat((x, coordinates(grid).to(x).expand(len(x), -1, -1)), -1)
        states = self.blocks(self.enter(x), grid, mask)
        return Encoded(states, mask, mean(states, mask))


class GridBlocks(nn.Module):
    """Residual convolutions over positions that come row by row."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))

    def forward(
        self,
        states: Float[Tensor, "B S D"],
        grid: tuple[int, int],
        mask: Bool[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B S D"]:
        """Convolve; what is outside of the picture is zero."""
        states = kept(states, mask)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            given = kept(functional.gelu(norm(states)), mask)
            made = layer(given.transpose(1, 2).unflatten(2, grid))
            states = kept(states + made.flatten(2).transpose(1, 2), mask)
        return states


def grid_of(text: Text) -> tuple[int, int]:
    """Rows and columns of a picture, or a refusal."""
    places = text.tokens.shape[1]
    if text.grid is None:
        raise Refused(
            "grid_cnn reads pictures, and the source has no grid; choose another encoder."
        )
    if text.grid[0] * text.grid[1] != places:
        raise Refused(f"a grid of {text.grid[0]} by {text.grid[1]} has no {places} positions.")
    return text.grid


def coordinates(grid: tuple[int, int]) -> Float[Tensor, "S 2"]:
    """Row and column of every position, from -1 to 1."""
    down, across = (torch.linspace(-1, 1, size) if size > 1 else torch.zeros(1) for size in grid)
    return torch.cartesian_prod(down, across)
