"""Say in one sentence what it computes; here a scaled dot product times a constant.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.one_query import OneQuery
from bench.api.registry import DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    scale: Annotated[float, FloatRange(0.05, 5.0, log=True)] = 0.5
    """What every energy is multiplied by, beside one over the root of the width."""

    def __post_init__(self) -> None:
        """Check the scale."""
        if self.scale <= 0:
            raise InvalidConfig(f"new_name: scale must be positive, got {self.scale}.")


@register(
    "score",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameScore(Score):
    """c q.k / sqrt(E); no parameters; time O(L S E) a head."""

    needs = frozenset({"equal_width"})
    gives = frozenset({"key_local"})

    def __init__(self, config: NewNameConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        # without the root, a softmax over wide states starts on one key (`start_entropy`)
        self.scale = config.scale * dims.key_width**-0.5

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One matrix product."""
        key = expand_heads(call.memory.source.key, call.query.shape[1])
        # the smaller factor first: products of large numbers leave the range of float16
        return (self.scale * call.query) @ key.transpose(-1, -2)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """The same, key by key; written from the paper, not from `energy`."""
        found = []
        for s in range(one.num_keys):
            energy = one.query.new_zeros(())
            for e in range(one.query.shape[0]):
                energy = energy + one.query[e] * one.key[s, e]
            found.append(self.scale * energy)
        return torch.stack(found)
