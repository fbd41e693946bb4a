"""Say in one sentence what a query reads; here the weighted sum of values, scaled.

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
from bench.api.one_query import OneQuery
from bench.api.readout import Readout
from bench.api.registry import DefaultTask, register
from bench.api.shapes import Allowed, Mixed, Weights
from variants.readouts.weighted_values import weighted_values


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    scale: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 2.0
    """What the sum is multiplied by."""

    def __post_init__(self) -> None:
        """Check the scale."""
        if self.scale <= 0:
            raise InvalidConfig(f"new_name: scale must be positive, got {self.scale}.")


@register(
    "readout",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameReadout(Readout):
    """c sum_s a_s v_s; no parameters; time O(L S E) a head."""

    def __init__(self, config: NewNameConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.scale = config.scale

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """One matrix product."""
        return self.scale * weighted_values(weights, call.memory.source.value)

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """The same, key by key; written from the paper, not from `read`."""
        output = torch.zeros_like(one.value[0])
        for s in range(one.num_keys):
            output = output + weights[s] * one.value[s]
        return self.scale * output
