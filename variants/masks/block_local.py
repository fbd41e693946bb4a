"""Local blocks: the sequence is cut into blocks, and each query sees the keys of its own block.

Liu et al., 2018, "Generating Wikipedia by summarizing long sequences",
https://arxiv.org/abs/1801.10198, section 4.2.4 (local attention); as `attention_chunk_size` in the
layers of Llama 4 that have rotary positions.

Deviations: the last block is what is left of the sequence, where the paper has blocks of similar
length.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask, Windows
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from variants.masks.window_keys import window_keys
from variants.one_sequence import ONE_SEQUENCE


@dataclass(frozen=True, kw_only=True)
class BlockLocalConfig(Config):
    """Options of the blocks."""

    block: Annotated[int, IntRange(2, 1024, log=True)] = 16
    """Keys of a block (keys)."""

    def __post_init__(self) -> None:
        """Check the size."""
        if self.block < 1:
            raise InvalidConfig(f"block_local: block must be at least 1, got {self.block}.")


@register(
    "mask",
    "block_local",
    title="Local blocks",
    config=BlockLocalConfig,
    citation=Citation(
        text="Liu et al., 2018", url="https://arxiv.org/abs/1801.10198", where="section 4.2.4"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Liu et al. summarize up to 11,000 tokens at once, where blocks make the cost linear and "
        "other layers look across them. Here one layer sees nothing across the border of a block, "
        "and at most 128 symbols are read. Costs are in the tables of speed."
    ),
)
class BlockLocalMask(Mask):
    """Keys j with floor(j / b) = floor(i / b) for query i, b the size of a block.

    Time O(L b E) per head on long sequences; else O(L^2 E).
    """

    kind = "window"
    removes = frozenset({"stream"})
    unsupported = ONE_SEQUENCE

    def __init__(self, config: BlockLocalConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.block = config.block
        self.window_width = config.block
        self.reach = config.block - 1

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """Squares along the diagonal of the matrix."""
        return query // self.block == key // self.block

    def gather(self, call: Call) -> Windows:
        """The square of each row."""
        first = (call.position - call.position % self.block)[None, None]
        index, allowed, _ = window_keys(call, first, self.block)
        return Windows(index, allowed)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """From the first key of the block to its last."""
        begin = one.position - one.position % self.block
        seen = [begin <= s < begin + self.block for s in range(one.num_keys)]
        return [seen[s] and one.visible(s) for s in range(one.num_keys)], [1.0] * one.num_keys
