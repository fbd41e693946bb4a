"""Feed-forward encoder: each state is a perceptron of its own position alone.

Raffel & Ellis, 2015, "Feed-forward networks with attention can solve some long-term memory
problems", https://arxiv.org/abs/1512.08756, section 3.2, h_t = LReLU(W x_t + b).

Deviations: the paper has one layer; a linear map (the embedding) comes before it here.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Bool, Float
from torch import Tensor, nn

from bench.api.config import Config, IntRange
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from tasks.backbones.encoders.masked_states import kept, mean


@dataclass(frozen=True, kw_only=True)
class FeedForwardConfig(Config):
    """Options of the feed-forward encoder."""

    layers: Annotated[int, IntRange(1, 4)] = 1
    """Layers, one above the other."""

    def __post_init__(self) -> None:
        """Check the number of layers."""
        if self.layers < 1:
            raise InvalidConfig(f"feed_forward: layers must be at least 1, got {self.layers}.")


@register(
    "encoder",
    "feed_forward",
    config=FeedForwardConfig,
    title="perceptron of each position",
    citation=Citation(
        text="Raffel and Ellis, 2015",
        url="https://arxiv.org/abs/1512.08756",
        where="section 3.2",
    ),
)
class FeedForwardEncoder(Encoder):
    """h_t = LReLU(W x_t + b); no state knows its neighbors or its position."""

    gives = frozenset({"online"})

    def __init__(self, config: FeedForwardConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.output_width = hidden
        self.summary_width = hidden
        parts: list[nn.Module] = []
        for width in [embedding_width] + [hidden] * (config.layers - 1):
            parts += [nn.Linear(width, hidden), nn.LeakyReLU()]
        self.layers = nn.Sequential(*parts)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Map every position; the summary is the mean of the real ones."""
        states = kept(self.layers(x), mask)
        return Encoded(states, mask, mean(states, mask))
