"""Sliding window: each query sees the keys near its own position.

Beltagy et al., 2020, "Longformer: the long-document transformer",
https://arxiv.org/abs/2004.05150, section 3.1; in causal language models Jiang et al., 2023,
"Mistral 7B", https://arxiv.org/abs/2310.06825, section 2.

Deviations: without causality the window has `window` - 1 keys on each side of the query, where
Longformer has half a window on each side.
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
class SlidingWindowConfig(Config):
    """Options of the sliding window."""

    window: Annotated[int, IntRange(2, 1024, log=True)] = 16
    """Keys seen under causality, the query's own among them; without it this many in each direction
    (keys)."""

    def __post_init__(self) -> None:
        """Check the window."""
        if self.window < 1:
            raise InvalidConfig(f"sliding_window: window must be at least 1, got {self.window}.")


@register(
    "mask",
    "sliding_window",
    title="Sliding window",
    config=SlidingWindowConfig,
    citation=Citation(
        text="Beltagy et al., 2020", url="https://arxiv.org/abs/2004.05150", where="section 3.1"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Windows make the cost of long sequences linear. Beltagy et al. report good language "
        "models of characters with 12 and 30 layers (41 and 102 million parameters), where several "
        "layers pass on what one window does not reach. Here one or two layers read at most 128 "
        "symbols, and keys that lie outside of the window are lost. Costs are in the tables of "
        "speed."
    ),
)
class SlidingWindowMask(Mask):
    """Keys j with i - window < j <= i for query i, and |i - j| < window without causality.

    Time O(L window E) per head on long sequences; else O(L^2 E).
    """

    kind = "window"
    removes = frozenset({"stream"})
    unsupported = ONE_SEQUENCE

    def __init__(self, config: SlidingWindowConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.far = self.reach = config.window - 1
        self.window_width = self.far + 1 if dims.regime == "causal" else 2 * self.far + 1

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """A band of the matrix."""
        return (query - key).abs() <= self.far

    def gather(self, call: Call) -> Windows:
        """The band, row by row."""
        assert self.window_width is not None, "set above"
        first = (call.position - self.far)[None, None]
        index, allowed, _ = window_keys(call, first, self.window_width)
        return Windows(index, allowed)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """Key by key."""
        low, high = one.position - self.far, one.position + self.far
        seen = [one.visible(s) and low <= s <= high for s in range(one.num_keys)]
        return seen, [1.0] * one.num_keys
