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
from variants.heads.projections import JoinedHeads, width_of_head


@dataclass(frozen=True, kw_only=True)
class MultiConfig(Config):
    """Options of multi-head projections."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    bias: bool = False
    """Whether the projections have biases."""
    key_width: int = 0
    """Width of queries and keys of each head, d_k in the paper; 0 is that of values, D/h."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.key_width < 0:
            raise InvalidConfig(f"multi: key_width must be at least 0, got {self.key_width}.")


@register(
    "head",
    "multi",
    config=MultiConfig,
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 3.2.2"
    ),
)
class MultiHeads(JoinedHeads):
    """Linear maps to h heads of width D/h and back to D; queries and keys may be narrower or wider.

    Recurrent mechanisms keep a matrix of key width by value width for each head, so `key_width` is
    the size of their state.
    """

    def __init__(
        self,
        config: MultiConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        width = width_of_head("multi", config.heads, query_width)
        keys = config.key_width or width
        dims = Dims(config.heads, config.heads, keys, keys, width, query_width, regime)
        self.project(dims, source_width, bias=config.bias)
