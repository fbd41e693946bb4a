"""Say in one sentence which keys a query sees; here itself and the keys just before it.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import DefaultTask, register


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    window: Annotated[int, IntRange(2, 256, log=True)] = 8
    """Keys that a query sees, its own place included (tokens)."""

    def __post_init__(self) -> None:
        """Check the window."""
        if self.window < 1:
            raise InvalidConfig(f"new_name: window must be at least 1, got {self.window}.")


@register(
    "mask",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="recall"),
)
class NewNameMask(Mask):
    """Keys i - w < j <= i; time O(L w) on long sequences."""

    kind = "window"
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "a window needs one sequence, and cross attention has two",
        "pool": "a window needs a place, and the query of pooling has none",
    }

    def __init__(self, config: NewNameConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.size = config.window
        # the furthest key that is seen; leave it out where there is no such distance
        self.reach = config.window - 1

    def sees(
        self, query: Int[Tensor, "*#n L 1"], key: Int[Tensor, "*#n 1 S"]
    ) -> Bool[Tensor, "*#n L S"]:
        """Keys less than a window away, by their places.

        A mask that goes by what queries and keys hold writes `window` in its place.
        """
        distance = query - key
        return (distance >= 0) & (distance < self.size)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """The same, key by key; written from the paper, not from `sees`."""
        near = [0 <= one.position - s < self.size for s in range(one.num_keys)]
        return near, [1.0] * one.num_keys
