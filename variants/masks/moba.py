"""Mixture of block attention: a query sees its own block and the earlier blocks that it likes best.

Lu et al., 2025, "MoBA: mixture of block attention for long-context LLMs",
https://arxiv.org/abs/2502.13189, section 2.2, equations 2 to 6: the affinity of a block is the
product of the query with the mean of its keys, and the best ones are read by one softmax.

Deviations: a mask and not a gather, so time stays quadratic. Positions that turn keys turn them
before the mean.
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed
from variants.block_means import block_means
from variants.one_sequence import CAUSAL_ONLY


@dataclass(frozen=True, kw_only=True)
class MobaConfig(Config):
    """Options of the selection of blocks."""

    block: Annotated[int, IntRange(2, 512, log=True)] = 8
    """Keys of a block."""
    chosen: Annotated[int, IntRange(2, 16)] = 3
    """Blocks that a query sees, its own among them."""

    def __post_init__(self) -> None:
        """Check both."""
        if min(self.block, self.chosen) < 1:
            raise InvalidConfig(
                f"moba: block and chosen must be at least 1, got {self.block} and {self.chosen}."
            )


@register(
    "mask",
    "moba",
    title="Mixture of block attention (MoBA)",
    config=MobaConfig,
    citation=Citation(
        text="Lu et al., 2025", url="https://arxiv.org/abs/2502.13189", where="section 2.2"
    ),
    cost=1.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Lu et al. report the loss of full attention at a fraction of its time for a million "
        "tokens. Here blocks are a mask, which saves no time."
    ),
)
class MobaMask(Mask):
    """Keys of the query's block up to its own place, and of the `chosen - 1` best blocks before.

    Each head chooses for itself, and no gradient goes through the choice. Time O(L S E), of which
    the choice takes O(L S E / block).
    """

    removes = frozenset({"stream"})
    gives = frozenset({"jumps"})
    needs = frozenset({"equal_width"})
    unsupported = CAUSAL_ONLY

    def __init__(self, config: MobaConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.size, self.chosen = config.block, config.chosen

    def window(self, call: Call) -> tuple[Allowed, None]:
        """Blocks, then their keys."""
        source = call.memory.source
        mean, _ = block_means(source.key.detach(), source.key_mask(), self.size)
        affinity = call.query.detach() @ expand_heads(mean, call.query.shape[1]).transpose(-1, -2)
        numbers = torch.arange(mean.shape[2], device=mean.device)
        own = call.position[:, None] // self.size
        before = numbers < own
        ranked = affinity.masked_fill(~before, float("-inf"))
        best = ranked.topk(min(self.chosen - 1, mean.shape[2]), -1).indices
        seen = torch.zeros_like(ranked, dtype=torch.bool).scatter(-1, best, True) & before
        seen = seen | (numbers == own)
        allowed = seen.index_select(-1, call.key_position // self.size)
        return allowed if call.allowed is None else allowed & call.allowed, None

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """Block by block."""
        own = one.position // self.size
        liked = []
        for block in range(own):
            keys = [one.key[block * self.size + i].detach() for i in range(self.size)]
            mean = [sum(float(key[e]) for key in keys) / self.size for e in range(len(one.query))]
            liked.append(
                (sum(float(q) * m for q, m in zip(one.query.detach(), mean, strict=True)), block)
            )
        liked.sort(reverse=True)
        seen = {own, *(block for _, block in liked[: self.chosen - 1])}
        return [one.visible(s) and s // self.size in seen for s in range(one.num_keys)], [
            1.0
        ] * one.num_keys
