"""Dilated window: each query sees keys near its own position, with gaps between them.

Beltagy et al., 2020, "Longformer: the long-document transformer",
https://arxiv.org/abs/2004.05150, section 3.1 (dilated sliding window).

Deviations: all heads of a layer have one dilation; the paper gives some heads of upper layers a
dilation and the others none.
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
class DilatedConfig(Config):
    """Options of the dilated window."""

    window: Annotated[int, IntRange(2, 1024, log=True)] = 16
    """Keys seen under causality, the query's own among them; without it this many in each direction
    (keys)."""
    dilation: Annotated[int, IntRange(2, 16)] = 2
    """Distance between keys that are seen; 1 is the sliding window (keys)."""

    def __post_init__(self) -> None:
        """Check both."""
        if min(self.window, self.dilation) < 1:
            raise InvalidConfig(
                "dilated: window and dilation must be at least 1, "
                f"got {self.window} and {self.dilation}."
            )


@register(
    "mask",
    "dilated",
    title="Dilated window",
    config=DilatedConfig,
    citation=Citation(
        text="Beltagy et al., 2020", url="https://arxiv.org/abs/2004.05150", where="section 3.1"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Gaps let a stack of layers reach further at the cost of the same window. Beltagy et al. "
        "use them together with windows that have none, for language models of characters with 12 "
        "and 30 layers (41 and 102 million parameters). Here one or two layers read at most 128 "
        "symbols, and keys in the gaps are lost. Costs are in the tables of speed."
    ),
)
class DilatedMask(Mask):
    """Keys at distances 0, d, 2 d, up to (window - 1) d from the query, d the dilation.

    Time O(L window d E) per head on long sequences; else O(L^2 E).
    """

    kind = "window"
    removes = frozenset({"stream"})
    unsupported = ONE_SEQUENCE

    def __init__(self, config: DilatedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.dilation = config.dilation
        # a cache keeps keys in the gaps, which the next queries see
        self.far = self.reach = (config.window - 1) * config.dilation
        sides = 1 if dims.regime == "causal" else 2
        self.window_width = sides * (config.window - 1) + 1

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """A comb of the matrix."""
        distance = query - key
        return (distance.abs() <= self.far) & (distance % self.dilation == 0)

    def gather(self, call: Call) -> Windows:
        """The comb, row by row."""
        assert self.window_width is not None, "set above"
        first = (call.position - self.far)[None, None]
        index, allowed, _ = window_keys(call, first, self.window_width, step=self.dilation)
        return Windows(index, allowed)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """One step of the dilation after the other, to both sides."""
        seen = [False] * one.num_keys
        for far in range(0, self.far + 1, self.dilation):
            for s in (one.position - far, one.position + far):
                if 0 <= s < one.num_keys and one.visible(s):
                    seen[s] = True
        return seen, [1.0] * one.num_keys
