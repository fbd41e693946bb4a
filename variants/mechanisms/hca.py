"""Heavily compressed attention: an entry for each long block, all of them read, and a near window.

DeepSeek-AI, 2026, "DeepSeek-V4: towards highly efficient million-token context intelligence",
https://arxiv.org/abs/2606.19348, section 2.3.2.

Deviations: what is compressed are the keys and values of the slot, each with gates of its own,
where the paper projects one vector for both anew; `head=gqa[kv_heads=1]` shares them among heads.
There is no norm of entries and no attention sink, and queries and outputs have the slot's
projections. Positions that turn keys turn them before they are compressed, and not entries by the
place of their block. Masks and not gathers, so that training takes quadratic time.
"""

from dataclasses import dataclass
from typing import Annotated

from bench.api.call import Dims
from bench.api.config import Config, IntRange
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.compressed_entries import CompressedEntries


@dataclass(frozen=True, kw_only=True)
class HcaConfig(Config):
    """Options of heavily compressed attention."""

    block: Annotated[int, IntRange(2, 128, log=True)] = 8
    """Keys of a block; the paper has 128."""
    window: Annotated[int, IntRange(2, 512, log=True)] = 8
    """Last keys that are read as they are, the query's own among them (keys)."""


@register(
    "mechanism",
    "hca",
    title="Heavily compressed attention (HCA)",
    config=HcaConfig,
    citation=Citation(
        text="DeepSeek-AI, 2026", url="https://arxiv.org/abs/2606.19348", where="section 2.3.2"
    ),
    cost=2.0,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "DeepSeek-AI use it in every other layer of networks of 284 billion and 1.6 trillion "
        "parameters, beside sparse layers, for 1 million tokens. Here every layer uses it. "
        "Sequences of this task have at most 128 symbols, which need no heavy compression."
    ),
)
class Hca(CompressedEntries):
    """softmax over entries sum_s softmax_s(gate_s + bias_s) x_s of blocks, and over the window.

    The softmax of an entry is over the keys of its block, number by number. The state has the
    entries, the window and the gates of the block that is open.
    """

    def __init__(self, config: HcaConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__("hca", dims, impl, block=config.block, window=config.window)
