"""Say in one sentence what it computes; here far keys lose energy for each step away.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import DefaultTask, register


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    slope: Annotated[float, FloatRange(0.01, 1.0, log=True)] = 0.1
    """Energy that a key loses for each step of distance."""

    def __post_init__(self) -> None:
        """Check the slope."""
        if self.slope <= 0:
            raise InvalidConfig(f"new_name: slope must be above 0, got {self.slope}.")


@register(
    "position",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="offset"),
)
class NewNamePosition(Position):
    """-c |i - j| joins the energy; no parameters; time O(L S)."""

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "cross": "distances need one sequence, and cross attention has two",
        "pool": "distances need one sequence, and the query of pooling has no place in it",
    }
    changes_energy = True
    # It asks for places (`call.position`, `call.key_position`) and not for the number of keys or
    # where they lie in memory, so a window may forget some. Leave this out if yours does not.
    by_place = True

    def __init__(self, config: NewNameConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.slope = config.slope

    def energy(self, call: Call) -> Float[Tensor, "1 1 L S"]:
        """The distance of every pair."""
        distance = (call.position[:, None] - call.key_position).abs()
        return -self.slope * distance[None, None].to(call.query.dtype)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """The same, key by key; written from the paper, not from `energy`."""
        lost = [-self.slope * abs(one.position - s) for s in range(one.num_keys)]
        return torch.tensor(lost, dtype=one.query.dtype, device=one.query.device)
