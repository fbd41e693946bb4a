"""Longformer: a window around each query, and a few global tokens that see all and are seen by all.

Beltagy et al., 2020, "Longformer: the long-document transformer",
https://arxiv.org/abs/2004.05150, section 3.1.

Deviations: the first tokens are the global ones; the paper chooses them by task, such as the
question of a question and answer. Global tokens have the projections of the others, not some of
their own. The window has `window` - 1 keys on each side, and one dilation for all heads. Without
causality the pattern is a mask, so that time and memory stay quadratic.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from variants.one_sequence import ONE_SEQUENCE


@dataclass(frozen=True, kw_only=True)
class LongformerConfig(Config):
    """Options of window and global tokens."""

    window: Annotated[int, IntRange(2, 1024, log=True)] = 16
    """Keys seen under causality, the query's own among them; without it this many in each direction
    (keys)."""
    dilation: Annotated[int, IntRange(1, 16)] = 1
    """Distance between keys of the window; 1 leaves no gaps (keys)."""
    global_tokens: Annotated[int, IntRange(1, 64, log=True), Legal(0)] = 1
    """First tokens, which see all and are seen by all (tokens)."""

    def __post_init__(self) -> None:
        """Check all three."""
        if min(self.window, self.dilation) < 1 or self.global_tokens < 0:
            raise InvalidConfig(
                "longformer: window and dilation must be at least 1 and global_tokens at least 0, "
                f"got {self.window}, {self.dilation} and {self.global_tokens}."
            )


@register(
    "mask",
    "longformer",
    title="Window and global tokens (Longformer)",
    config=LongformerConfig,
    citation=Citation(
        text="Beltagy et al., 2020", url="https://arxiv.org/abs/2004.05150", where="section 3.1"
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Beltagy et al. report gains on documents of up to 4,096 tokens, which a model with full "
        "attention has to cut. Sequences of this task have at most 128 symbols, so nothing has to "
        "be cut."
    ),
)
class LongformerMask(Mask):
    """Keys at distances 0, d, up to (window - 1) d, and all pairs with one of the first g tokens.

    Under causality a global token sees its past, and every later query sees it; time is then
    O(L (g + window d) E) per head on long sequences. Else it is O(L^2 E).
    """

    kind = "dense"
    removes = frozenset({"stream"})
    unsupported = ONE_SEQUENCE

    def __init__(self, config: LongformerConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.config = config
        self.far = (config.window - 1) * config.dilation
        if dims.regime == "causal":
            # global tokens see no key that is far, for all that they see are global
            self.reach, self.sinks = self.far, config.global_tokens

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """A band, the first rows and the first columns."""
        distance = query - key
        near = (distance.abs() <= self.far) & (distance % self.config.dilation == 0)
        return near | (query < self.config.global_tokens) | (key < self.config.global_tokens)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """The window step by step, then the global tokens."""
        i, first = one.position, self.config.global_tokens
        seen = [i < first or s < first for s in range(one.num_keys)]
        for step in range(self.config.window):
            for s in (i - step * self.config.dilation, i + step * self.config.dilation):
                if 0 <= s < one.num_keys:
                    seen[s] = True
        return [seen[s] and one.visible(s) for s in range(one.num_keys)], [1.0] * one.num_keys
