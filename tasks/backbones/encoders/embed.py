"""Embeddings as they are: each state knows its own token, and its position if one is added.

"Concatenation" in the sources; Kalchbrenner-style lookups without context.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.config import Config
from bench.api.encoder import Encoded, Encoder
from bench.api.registry import register
from tasks.backbones.encoders.input_positions import Kind, positions
from tasks.backbones.encoders.masked_states import kept, mean


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Config):
    """Options of bare embeddings."""

    positions: Kind = "off"
    """Positions that are added to the states."""


@register("encoder", "embed", config=EmbedConfig, title="embeddings without context")
class EmbedEncoder(Encoder):
    """States are the embedded tokens; the summary is their mean."""

    gives = frozenset({"online"})

    def __init__(self, config: EmbedConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.positions = positions(config.positions, embedding_width)
        self.output_width = embedding_width
        self.summary_width = embedding_width

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Average the real tokens."""
        states = kept(x if self.positions is None else self.positions.embed(x, 0), mask)
        return Encoded(states, mask, mean(states, mask))
