"""Multi-head projections: several small attentions side by side.

Vaswani et al., 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.2.2.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from bench.api.call import Dims
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from variants.heads.projections import JoinedHeads


@dataclass(frozen=True, kw_only=True)
class MultiConfig(Config):
    """Options of multi-head projections."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    bias: bool = False
    """Whether the projections have biases."""


@register(
    "head",
    "multi",
    config=MultiConfig,
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.2.2"
    ),
)
class MultiHeads(JoinedHeads):
    """Linear maps to h heads of width D/h and back to D."""

    def __init__(
        self,
        config: MultiConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        if config.heads < 1 or query_width % config.heads:
            raise InvalidConfig(
                f"multi: heads must divide the model width {query_width}, got {config.heads}."
            )
        width = query_width // config.heads
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        self.project(dims, source_width, bias=config.bias)
