"""Query-key normalization: queries and keys are normalized, head by head, before their product.

Henry et al., 2020, "Query-key normalization for transformers", https://arxiv.org/abs/2010.04245,
section 3, with `norm=l2`: unit length, and a learned scale that starts at log2(L^2 - L) in place of
the division by the root of the width. `norm=rms` divides by the root mean square and has a gain for
each unit, after Dehghani et al., 2023, "Scaling vision transformers to 22 billion parameters",
https://arxiv.org/abs/2302.05442, section 2, who use layer normalization, as later language models
use it.

Deviations: L is an option, in the paper the 97.5th percentile of the lengths of training sentences.
Dehghani et al. subtract the mean, too. Norms come with their energies under the score `scaled_dot`;
under another score the scale of `norm=l2` is larger by the root of the width.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from bench.api.call import Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register
from variants.heads.grouped import GroupedHeads
from variants.heads.query_key_norm import query_key_norm


@dataclass(frozen=True, kw_only=True)
class QkNormConfig(Config):
    """Options of query-key normalization."""

    heads: Annotated[int, Choices((1, 2, 4, 8))] = 4
    """Number of heads; divides the model width."""
    bias: bool = False
    """Whether the projections have biases."""
    norm: Literal["rms", "l2"] = "rms"
    """Root mean square with gains, or unit length with a learned scale."""
    length: Annotated[int, IntRange(8, 4096, log=True)] = 64
    """Length of training sequences (tokens), from which the scale of `norm=l2` starts."""


@register(
    "head",
    "qk_norm",
    config=QkNormConfig,
    title="Query-key normalization",
    citation=Citation(
        text="Henry et al., 2020", url="https://arxiv.org/abs/2010.04245", where="section 3"
    ),
    default_task=DefaultTask(task="recall"),
)
class QkNormHeads(GroupedHeads):
    """Multi-head projections with a norm of queries and keys.

    Cost: that of multi-head attention, and a few operations for each unit of queries and keys.
    """

    def __init__(
        self,
        config: QkNormConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        if config.heads < 1 or query_width % config.heads:
            raise InvalidConfig(
                f"qk_norm: heads must divide the model width {query_width}, got {config.heads}."
            )
        width = query_width // config.heads
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        norm = query_key_norm(config.norm, width, config.length)
        self.make(dims, source_width, bias=config.bias, norm=norm)
