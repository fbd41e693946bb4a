"""Attention sinks and a window: each query sees the first keys of all and those just before it.

Xiao et al., 2024, "Efficient streaming language models with attention sinks",
https://arxiv.org/abs/2309.17453, section 3.2 (StreamingLLM).

Deviations: positions are those of the text; the paper counts them within its cache. The paper
restricts a trained model, the bench trains with the mask.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask, Windows
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from variants.masks.window_keys import window_keys
from variants.one_sequence import CAUSAL_ONLY


@dataclass(frozen=True, kw_only=True)
class StreamingConfig(Config):
    """Options of sinks and window."""

    window: Annotated[int, IntRange(2, 1024, log=True)] = 16
    """Last keys that are seen, the query's own among them (keys)."""
    sinks: Annotated[int, IntRange(1, 16), Legal(0)] = 4
    """First keys of the sequence, which stay visible (keys)."""

    def __post_init__(self) -> None:
        """Check both."""
        if self.window < 1 or self.sinks < 0:
            raise InvalidConfig(
                "streaming: window must be at least 1 and sinks at least 0, "
                f"got {self.window} and {self.sinks}."
            )


@register(
    "mask",
    "streaming",
    title="Attention sinks and a sliding window",
    config=StreamingConfig,
    citation=Citation(
        text="Xiao et al., 2024", url="https://arxiv.org/abs/2309.17453", where="section 3.2"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Xiao et al. report that trained language models stay fluent over 4 million tokens with "
        "four sinks and a window, and break down without the sinks. That takes a model which was "
        "trained with full attention. Here it is trained with the mask, and reads at most 128 "
        "symbols. Costs are in the tables of speed."
    ),
)
class StreamingMask(Mask):
    """Keys j with j < sinks or i - window < j, up to the query's own place i.

    Time O(L (sinks + window) E) per head on long sequences; else O(L^2 E).
    """

    kind = "window"
    removes = frozenset({"stream"})
    unsupported = CAUSAL_ONLY

    def __init__(self, config: StreamingConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.last = config.window
        self.reach = config.window - 1
        self.sinks = config.sinks
        self.window_width = config.window + config.sinks

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """A band of the matrix and its first columns."""
        return (query - key < self.last) | (key < self.sinks)

    def gather(self, call: Call) -> Windows:
        """The sinks that the band does not hold, then the band."""
        first = (call.position - self.last + 1)[None, None]
        index, allowed, _ = window_keys(call, first, self.last)
        sink, real, place = window_keys(call, torch.zeros_like(first), self.sinks)
        outside = real & (place < first.unsqueeze(-1))
        return Windows(torch.cat((sink, index), -1), torch.cat((outside, allowed), -1))

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """Key by key."""
        seen = [s < self.sinks or s > one.position - self.last for s in range(one.num_keys)]
        return [seen[s] and one.visible(s) for s in range(one.num_keys)], [1.0] * one.num_keys
