"""BigBird: blocks of keys around each query, the first and the last, and some drawn at random.

Zaheer et al., 2020, "Big Bird: transformers for longer sequences",
https://arxiv.org/abs/2007.14062, section 2 and appendix D (blocks; the construction within the
sequence, ITC).

Deviations: random blocks are drawn anew for each head, by a hash of seed, head, and the numbers of
both blocks, so that neither padding nor the length of a call changes them. All layers have the
same draw; the authors' code draws anew for each layer. The paper is
bidirectional; under causality only the first blocks are global, since the last ones are not yet
known, and blocks are drawn from the past. The pattern is a mask, so that time and memory stay
quadratic.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask
from bench.api.noise import Noise
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed
from variants.one_sequence import ONE_SEQUENCE

STREAM = "bigbird.blocks"


@dataclass(frozen=True, kw_only=True)
class BigBirdConfig(Config):
    """Options of the blocks."""

    block: Annotated[int, IntRange(2, 128, log=True)] = 4
    """Keys of a block, and queries that share what they see (tokens)."""
    near: Annotated[int, IntRange(0, 8)] = 1
    """Blocks seen on each side of the query's own."""
    ends: Annotated[int, IntRange(0, 8)] = 1
    """Blocks at each end of the sequence that see all and are seen by all."""
    random: Annotated[int, IntRange(1, 16), Legal(0)] = 3
    """Further blocks that the queries of a block see, drawn once."""
    seed: int = 0
    """Of that draw."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.block < 1 or min(self.near, self.ends, self.random) < 0:
            raise InvalidConfig(
                "bigbird: block must be at least 1 and near, ends and random at least 0, "
                f"got {self.block}, {self.near}, {self.ends} and {self.random}."
            )


@register(
    "mask",
    "bigbird",
    title="Window, global and random blocks (BigBird)",
    config=BigBirdConfig,
    citation=Citation(
        text="Zaheer et al., 2020", url="https://arxiv.org/abs/2007.14062", where="section 2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Zaheer et al. report gains on documents eight times as long as full attention allowed on "
        "their machines, 4,096 tokens. Sequences of this task have at most 128 symbols, where "
        "there is nothing to gain."
    ),
)
class BigBirdMask(Mask):
    """Blocks within `near` of the query's own, `ends` first and last ones, and `random` others.

    A query in a global block sees every block. Time O(L^2 E) per head.
    """

    kind = "dense"
    removes = frozenset({"stream"})
    unsupported = ONE_SEQUENCE

    def __init__(self, config: BigBirdConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        self.heads = dims.heads
        self.noise = Noise(config.seed)

    def window(self, call: Call) -> tuple[Allowed, None]:
        """Choose blocks for every query, then look up the block of every key."""
        own = call.position // self.config.block
        of_key = call.key_position // self.config.block
        chosen = self._chosen(call, own, int(of_key.shape[0] - 1) // self.config.block + 1)
        seen = chosen[..., of_key]
        return call.within(seen), None

    def _chosen(self, call: Call, own: Int[Tensor, " L"], count: int) -> Bool[Tensor, "B H L N"]:
        """Which of the N blocks each query sees."""
        config, block = self.config, torch.arange(count, device=own.device)
        before = block <= own[:, None]
        surely = ((block - own[:, None]).abs() <= config.near) | (block < config.ends)
        surely = (surely | (own[:, None] < config.ends))[None]
        if call.causal:  # places count padding in front, too, and the number of keys does not
            exists = before
        else:
            last = (call.memory.source.end - 1).view(-1, 1, 1) // config.block
            exists = block <= last
            surely = surely | (block > last - config.ends) | (own[:, None] > last - config.ends)
        if not config.random:
            return (surely & exists).unsqueeze(1)
        drawn = self.noise.uniform(STREAM, 1, self.heads, own, count)
        free = (exists & ~surely).unsqueeze(1)
        # a number above all draws, so that what is not free is never taken
        rank = torch.where(free, drawn, 2.0).argsort(-1).argsort(-1)
        return (free & (rank < config.random)) | (surely & exists).unsqueeze(1)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """One block after the other."""
        config, own = self.config, one.position // self.config.block
        last = (one.num_keys - 1) // config.block
        ends = [m for m in range(last + 1) if m < config.ends]
        if not one.causal:
            ends += [m for m in range(last + 1) if m > last - config.ends]
        known = range((own if one.causal else last) + 1)
        near = [m for m in known if abs(m - own) <= config.near]
        chosen = {m for m in known if own in ends or m in ends or m in near}
        place = torch.tensor([own])
        drawn = self.noise.uniform(STREAM, 1, one.head + 1, place, last + 1)[0, one.head, 0]
        others = sorted((float(drawn[m]), m) for m in known if m not in chosen)
        chosen |= {m for _, m in others[: config.random]}
        seen = [s // config.block in chosen for s in range(one.num_keys)]
        return [seen[s] and one.visible(s) for s in range(one.num_keys)], [1.0] * one.num_keys
