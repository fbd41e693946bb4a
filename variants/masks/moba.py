"""Mixture of block attention: a query sees its own block and the earlier blocks that it likes best.

Lu et al., 2025, "MoBA: mixture of block attention for long-context LLMs",
https://arxiv.org/abs/2502.13189, section 2.2, equations 2 to 6: the affinity of a block is the
product of the query with the mean of its keys, and the best ones are read by one softmax.

Deviations: positions that turn keys turn them before the mean.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.call import Call, Dims, QueryShape
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.mask import Mask, Windows
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Key
from bench.api.source import Memory, Tree, leaf, leaves
from variants.block_means import block_means
from variants.one_sequence import CAUSAL_ONLY

MEAN, REAL = "mean", "real"
"""What is carried: means of the keys of closed blocks, and whether they hold any real key."""


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
        "Lu et al. report the loss of full attention at a fraction of its time for 1 million "
        "tokens. Sequences of this task have at most 128 symbols, and keys of blocks that are not "
        "chosen are lost. Costs are in the tables of speed."
    ),
)
class MobaMask(Mask):
    """Keys of the query's block up to its own place, and of the `chosen - 1` best blocks before.

    Each head chooses for itself, and no gradient goes through the choice, which takes
    O(L S E / block). On long sequences the rest takes O(L chosen block E), else O(L S E).
    """

    removes = frozenset({"stream"})
    gives = frozenset({"jumps"})
    carries = True
    needs = frozenset({"equal_width"})
    unsupported = CAUSAL_ONLY

    def __init__(self, config: MobaConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.size, self.chosen, self.kv_heads = config.block, config.chosen, dims.kv_heads
        self.window_width = config.block * config.chosen

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """No block is closed."""
        shape = (like.rows, self.kv_heads, 0, like.width)
        return self._none(torch.empty(shape, dtype=like.dtype, device=like.device))

    def _none(self, key: Key) -> Tree:
        """Means of no blocks, none of which holds a real key."""
        none = key.detach()[:, :, :0]
        return {MEAN: none, REAL: none.new_zeros(key.shape[0], 0, dtype=torch.bool)}

    def advance(self, call: Call, state: Tree) -> Tree:
        """Add the means of the blocks that have been closed."""
        before, source = leaf(state, MEAN), call.memory.source
        known, whole = before.shape[2], source.num_keys // self.size
        if known == whole:  # as in most steps of decoding
            return state
        some = slice(known * self.size, whole * self.size)
        real = None if source.mask is None else source.mask[:, some]
        mean, count = block_means(source.key[:, :, some].detach(), real, self.size)
        more = {MEAN: mean, REAL: count > 0}
        return call.join(leaves(state, more), more)

    def window(self, call: Call) -> tuple[Allowed, None]:
        """Blocks, then their keys."""
        best, blocks = self._best(call)
        own = call.position[:, None] // self.size
        numbers = torch.arange(blocks, device=best.device)
        none = torch.zeros(*best.shape[:3], blocks, dtype=torch.bool, device=best.device)
        seen = none.scatter(-1, best, True) & (numbers < own) | (numbers == own)
        return call.within(seen.index_select(-1, call.key_position // self.size)), None

    def gather(self, call: Call) -> Windows:
        """The keys of the blocks, one block after the other, and those of the own block last."""
        best, _ = self._best(call)
        own = (call.position // self.size)[:, None]
        blocks = torch.cat((best, own.expand(*best.shape[:3], 1)), -1)
        # blocks that have not come yet stand where there were too few before
        valid = torch.cat((best, own.expand(*best.shape[:3], 1) - 1), -1) < own
        place = blocks.unsqueeze(-1) * self.size + torch.arange(self.size, device=best.device)
        last = call.memory.num_keys - 1
        keys = place.flatten(3).clamp(max=last)
        there = (place <= call.position[:, None, None]) & valid.unsqueeze(-1)
        allowed = there.flatten(3)
        mask = call.memory.source.mask
        if mask is not None:
            real = mask[:, None].expand(-1, keys.shape[1], -1)
            allowed = allowed & real.gather(2, keys.flatten(2)).view_as(keys)
        return Windows(keys, allowed)

    def _best(self, call: Call) -> tuple[Int[Tensor, "B Hq L K"], int]:
        """Earlier blocks that queries like best, and how many blocks there are."""
        source = call.memory.source
        blocks = -(-source.num_keys // self.size)
        known = call.chosen_by or self.advance(call, self._none(source.key))
        # the block that is open is read in any case, and has no mean
        mean = leaf(known, MEAN)[:, :, :blocks]
        affinity = call.query.detach() @ expand_heads(mean, call.query.shape[1]).transpose(-1, -2)
        numbers = torch.arange(mean.shape[2], device=mean.device)
        before = numbers < call.position[:, None] // self.size
        # nobody likes padding, whose mean of zero would be liked more than many a block
        before = before & leaf(known, REAL)[:, None, None, :blocks]
        ranked = affinity.masked_fill(~before, float("-inf"))
        return ranked.topk(min(self.chosen - 1, mean.shape[2]), -1).indices, blocks

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
