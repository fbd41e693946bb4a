"""Query-key normalization: queries and keys are normalized, head by head, before their product.

Dehghani et al., 2023, "Scaling vision transformers to 22 billion parameters",
https://arxiv.org/abs/2302.05442, section 2. `norm=rms` divides by the root mean square and has a
gain for each unit, as in later language models. `norm=l2` is that of Henry et al., 2020, "Query-key
normalization for transformers", https://arxiv.org/abs/2010.04245, section 3: unit length, and a
learned scale that starts at log2(L^2 - L) in place of the division by the root of the width.

Deviations: Dehghani et al. use layer normalization, which subtracts the mean, too. L is an option,
in Henry et al. the 97.5th percentile of the lengths of training sentences. Norms come with their
energies under the score `scaled_dot`; under another score the scale of `norm=l2` is larger by the
root of the width.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from bench.api.call import Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.registry import Citation, DefaultTask, register
from variants.heads.grouped import GroupedHeads
from variants.heads.projections import width_of_head
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
        text="Dehghani et al., 2023", url="https://arxiv.org/abs/2302.05442", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Dehghani et al. report that it keeps the training of vision transformers stable, which "
        "diverged without it at 8 billion parameters. Here networks are small and train without "
        "it. Recall is solved: the baseline recalls nearly every pair, which leaves no room above "
        "it."
    ),
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
        width = width_of_head("qk_norm", config.heads, query_width)
        dims = Dims(config.heads, config.heads, width, width, width, query_width, regime)
        norm = query_key_norm(config.norm, width, config.length)
        self.make(dims, source_width, bias=config.bias, norm=norm)
