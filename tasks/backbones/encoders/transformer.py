"""Transformer encoder in front of a recurrent decoder or of pooling.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.1.

Deviations: pre-norm and GELU by default; a linear map first, because words may be narrower than the
model. Its layers hold scaled dot-product attention, never the variant under test.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from bench.api.build import SlotPlace, build_slot
from bench.api.config import Choices, Config, IntRange
from bench.api.encoder import Encoded, Encoder
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.resolve import resolve
from bench.api.trace import Mode
from tasks.backbones.encoders.input_positions import Kind, positions
from tasks.backbones.encoders.masked_states import kept, mean
from tasks.backbones.transformer_blocks import Block, BlockConfig, LayerPath, last_norm

PLAIN = Mode(want_weights=False)


@dataclass(frozen=True, kw_only=True)
class TransformerEncoderConfig(Config):
    """Options of the transformer encoder."""

    layers: Annotated[int, IntRange(1, 12)] = 2
    """Blocks of self-attention and feed-forward."""
    heads: Annotated[int, IntRange(1, 16)] = 4
    """Heads of every block."""
    norm: Annotated[Literal["pre", "post", "off"], Choices(("pre", "post", "off"))] = "pre"
    """Layer normalization before or after each sublayer; the paper has `post`."""
    activation: Annotated[Literal["gelu", "relu"], Choices(("gelu", "relu"))] = "gelu"
    """Between the two maps of the feed-forward sublayer; the paper has `relu`."""
    positions: Kind = "sinusoid"
    """Positions that are added to tokens; without them the encoder reads a bag of words."""


@register(
    "encoder",
    "transformer",
    config=TransformerEncoderConfig,
    title="transformer encoder",
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.1"
    ),
)
class TransformerEncoder(Encoder):
    """Every state sees every token; the summary is the mean state."""

    def __init__(self, config: TransformerEncoderConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        if config.heads < 1 or hidden % config.heads:
            raise InvalidConfig(f"transformer: heads must divide {hidden}, got {config.heads}.")
        self.output_width = hidden
        self.summary_width = hidden
        self.positions = positions(config.positions, hidden)
        self.enter = nn.Linear(embedding_width, hidden)
        place = SlotPlace(
            regime="self",
            query_width=hidden,
            source_width=hidden,
            head=f"multi[heads={config.heads}]",
            given=frozenset({"padding", "stepwise"}),
        )
        block = BlockConfig(
            width=hidden,
            layers=config.layers,
            heads=config.heads,
            norm=config.norm,
            activation=config.activation,
        )
        plain = resolve("scaled_dot")
        self.blocks = nn.ModuleList(
            Block(block, build_slot(plain, place)) for _ in range(config.layers)
        )
        self.norm = last_norm(block)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Run the blocks over all tokens at once."""
        states = self.enter(x)
        if self.positions is not None:
            states = self.positions.embed(states, 0)
        for block in self.blocks:
            states, _, _, _ = block(states, mask, (), LayerPath(), (PLAIN, PLAIN))
        states = kept(self.norm(states), mask)
        return Encoded(states, mask, mean(states, mask))
