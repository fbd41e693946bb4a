"""Monotonic local attention (local-m): a window whose center moves along with the target.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.2 (local-m).

Deviations: positions are counted from zero. The center stays on the last key of the row once the
target is longer than the source, where the paper's window would be empty. `ratio` moves the center
by a constant number of keys a word, because the length of the target is not known in decoding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import Annotated, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.mask import Mask, Windows
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Allowed
from variants.masks.window_keys import window_keys


@dataclass(frozen=True, kw_only=True)
class LocalMonotonicConfig(Config):
    """Options of the moving window."""

    window: Annotated[int, IntRange(1, 64, log=True), Legal(0)] = 10
    """Keys seen on each side of the center, D (keys)."""
    ratio: Annotated[float, FloatRange(0.25, 4.0, log=True)] = 1.0
    """Keys that the center moves on for each query; sources over targets in length."""

    def __post_init__(self) -> None:
        """Check both."""
        if self.window < 0:
            raise InvalidConfig(f"luong_local_m: window must be at least 0, got {self.window}.")
        if self.ratio <= 0:
            raise InvalidConfig(f"luong_local_m: ratio must be above 0, got {self.ratio}.")


@register(
    "mask",
    "luong_local_m",
    config=LocalMonotonicConfig,
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.2",
    ),
)
class LocalMonotonicMask(Mask):
    """Keys within D of p = min(round(ratio t), length - 1), for query t.

    Time O(L D E) per head where windows are gathered (long sources); else O(L S E).
    """

    kind = "window"
    removes = frozenset({"stream"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "pool": "the center moves with the queries, and pooling has only one"
    }

    def __init__(self, config: LocalMonotonicConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.radius = config.window
        self.ratio = config.ratio
        self.window_width = 2 * config.window + 1

    def center(self, call: Call) -> Int[Tensor, "#B 1 L"]:
        """Center of each query's window."""
        center = (self.ratio * call.position.double() + 0.5).floor().long()[None, None]
        if call.causal:  # the last key is at the query's own position
            return torch.minimum(center, call.position)
        return torch.minimum(center, call.memory.source.end.view(-1, 1, 1) - 1)

    def window(self, call: Call) -> tuple[Allowed, None]:
        """A band of the matrix."""
        distance = call.key_position - self.center(call).unsqueeze(-1)
        near = distance.abs() <= self.radius
        return call.within(near), None

    def gather(self, call: Call) -> Windows:
        """The band, row by row."""
        index, allowed, _ = window_keys(call, self.center(call) - self.radius, 2 * self.radius + 1)
        return Windows(index, allowed)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """The window around one center, key by key."""
        last = one.position if one.causal else one.num_keys - 1
        center = min(floor(self.ratio * one.position + 0.5), last)
        near = [center - self.radius <= s <= center + self.radius for s in range(one.num_keys)]
        return [near[s] and one.visible(s) for s in range(one.num_keys)], [1.0] * one.num_keys


register_recipe(
    "luong_local_m",
    Recipe(axes={"mask": "luong_local_m", "score": "general"}, main="mask"),
    module=__name__,
    title="Local attention that moves on by one key a step",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 3.2"
    ),
    default_task=DefaultTask(task="transduction[rule=copy]"),
    does_not_show=(
        "Luong et al. report 18.6 BLEU from English to German (4.5 million pairs of sentences), "
        "and 17.3 for global attention with the same score. Here its mean is higher than the "
        "baseline's, and a run of few seeds may leave the difference undecided."
    ),
    cost=1.2,
    deviations="those of the mask `luong_local_m` and of the general score.",
)
