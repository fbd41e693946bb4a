"""Strided and fixed patterns: some heads see keys nearby, the others one key of every stride.

Child et al., 2019, "Generating long sequences with sparse transformers",
https://arxiv.org/abs/1904.10509, on strided and fixed attention, and on heads that have one of two
patterns or merge both.

Deviations: heads of even number see what is nearby, those of odd number the other pattern. The
pattern is a mask, so that time and memory stay quadratic; the paper computes no more than a pattern
holds. Under `pattern=fixed` a query of an odd head whose past has no summary key reads zero.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.mask import Mask
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed
from variants.one_sequence import CAUSAL_ONLY

Pattern = Literal["strided", "fixed"]
HeadsOf = Literal["split", "merged"]


@dataclass(frozen=True, kw_only=True)
class StridedConfig(Config):
    """Options of both patterns."""

    stride: Annotated[int, IntRange(2, 256, log=True)] = 4
    """Distance between keys seen from afar, l; near the square root of the length (keys)."""
    pattern: Annotated[Pattern, Choices(("strided", "fixed"))] = "strided"
    """The last l keys and every l-th before the query; or the query's own block of l keys and the
    last keys of every block."""
    summary: Annotated[int, IntRange(1, 32)] = 1
    """Last keys of each block that later blocks see under `pattern=fixed`, c (keys)."""
    heads: Annotated[HeadsOf, Choices(("split", "merged"))] = "split"
    """Whether each head has one of the two patterns, or all heads have both at once."""

    def __post_init__(self) -> None:
        """Check both numbers."""
        if self.stride < 1 or not 1 <= self.summary <= self.stride:
            raise InvalidConfig(
                "strided: stride must be at least 1 and summary between 1 and stride, "
                f"got {self.stride} and {self.summary}."
            )


@register(
    "mask",
    "strided",
    title="Strided or fixed pattern of the sparse transformer",
    config=StridedConfig,
    citation=Citation(
        text="Child et al., 2019",
        url="https://arxiv.org/abs/1904.10509",
        where="strided and fixed",
    ),
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Child et al. report dense quality at a cost of length to the power 1.5, over tens of "
        "thousands of positions (text of Enwik8, pictures of 64 by 64 pixels). In their stacks of "
        "many layers, two layers pass anything on. One layer cannot, and sequences of this task "
        "have at most 128 symbols."
    ),
)
class StridedMask(Mask):
    """Even heads: i - j <= l; odd heads: l divides i - j; under causality.

    With `fixed` even heads see floor(j / l) = floor(i / l), and odd heads j mod l >= l - c. Time
    O(L^2 E) per head.
    """

    kind = "dense"
    removes = frozenset({"stream"})
    unsupported = CAUSAL_ONLY

    def __init__(self, config: StridedConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        if config.heads == "split" and dims.heads < 2:
            raise Refused(
                "strided: heads=split needs two heads or more, and there is one; use heads=merged."
            )
        self.config = config
        self.heads = dims.heads

    def window(self, call: Call) -> tuple[Allowed, None]:
        """Both patterns, each for its heads."""
        near, far = self._patterns(call)
        if self.config.heads == "merged":
            seen = (near | far)[None, None]
        else:
            seen = torch.stack([far if head % 2 else near for head in range(self.heads)])[None]
        return call.within(seen), None

    def _patterns(self, call: Call) -> tuple[Bool[Tensor, "L S"], Bool[Tensor, "L S"]]:
        query, key, stride = call.position[:, None], call.key_position, self.config.stride
        if self.config.pattern == "strided":
            return query - key <= stride, (query - key) % stride == 0
        far = key % stride >= stride - self.config.summary
        return query // stride == key // stride, far.expand(len(query), -1)

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float]]:
        """The sets of the paper, key by key."""
        i, stride = one.position, self.config.stride
        if self.config.pattern == "strided":
            near = set(range(max(0, i - stride), i + 1))
            far = set(range(i % stride, i + 1, stride))
        else:
            begin = i - i % stride
            near = set(range(begin, i + 1))
            far = {j for j in range(i + 1) if stride - j % stride <= self.config.summary}
        own = far if one.head % 2 else near
        chosen = near | far if self.config.heads == "merged" else own
        return [s in chosen for s in range(one.num_keys)], [1.0] * one.num_keys
