"""Grouped-query attention: several query heads share one head of keys and values.

Ainslie et al., 2023, "GQA: training generalized multi-query transformer models from multi-head
checkpoints", https://arxiv.org/abs/2305.13245, section 2.2. Query head h reads key head
floor(h G / H), with H query heads and G key heads.

Deviations: built from the start, not converted from a multi-head checkpoint by averaging its key
heads. `qk_norm` is not of this paper; see the heads `qk_norm`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from bench.api.call import Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register
from variants.heads.grouped import GroupedHeads
from variants.heads.projections import width_of_head
from variants.heads.query_key_norm import QueryKeyNormName, query_key_norm


@dataclass(frozen=True, kw_only=True)
class GqaConfig(Config):
    """Options of grouped-query attention."""

    heads: Annotated[int, Choices((2, 4, 8))] = 4
    """Number of query heads; divides the model width."""
    kv_heads: Annotated[int, Choices((1, 2))] = 2
    """Number of heads of keys and values; divides the number of query heads."""
    bias: bool = False
    """Whether the projections have biases."""
    qk_norm: QueryKeyNormName = "none"
    """How queries and keys are normalized, head by head."""
    length: Annotated[int, IntRange(8, 4096, log=True)] = 64
    """Length of training sequences (tokens), from which the scale of `qk_norm=l2` starts."""


@register(
    "head",
    "gqa",
    config=GqaConfig,
    title="Grouped-query attention (GQA)",
    citation=Citation(
        text="Ainslie et al., 2023", url="https://arxiv.org/abs/2305.13245", where="section 2.2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Ainslie et al. report a quality near that of one key and value a head at nearly the speed "
        "of one for all, and no gain of quality. They go on training T5-XXL, which had one a head, "
        "with 5% of the computation of its first training. Here heads share from the start, and "
        "the score does not count time."
    ),
)
class GqaHeads(GroupedHeads):
    """Linear maps to H query heads and G heads of keys and values, all of width D/H.

    Cost: a cache of 2 G D/H numbers a token instead of 2 D; attention itself costs as much.
    """

    def __init__(
        self,
        config: GqaConfig,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__(config, query_width, source_width, regime)
        heads, kv_heads = config.heads, config.kv_heads
        width = width_of_head("gqa", heads, query_width)
        if kv_heads < 1 or heads % kv_heads:
            raise InvalidConfig(f"gqa: kv_heads must divide heads={heads}, got {kv_heads}.")
        dims = Dims(heads, kv_heads, width, width, width, query_width, regime)
        norm = query_key_norm(config.qk_norm, width, config.length)
        self.make(dims, source_width, bias=config.bias, norm=norm)
