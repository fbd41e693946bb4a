"""No normalization (control): the energies themselves are the weights.

No paper: the control of normalization, and with a dot product the linear attention of Luong et
al., 2015, without its softmax.

Deviations: none. Weights may be negative and need not sum to one, so components that need a
distribution over keys (coverage, copying, supervision) are refused.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.registry import register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree


@dataclass(frozen=True, kw_only=True)
class NoneConfig(Config):
    """Options of raw scores."""

    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """What energies are divided by (dimensionless)."""

    def __post_init__(self) -> None:
        """Check the temperature."""
        if self.temperature <= 0:
            raise InvalidConfig(f"none: temperature must be above 0, got {self.temperature}.")


@register(
    "normalizer", "none", config=NoneConfig, title="Raw scores as weights", control="negative"
)
class NoneNormalizer(Normalizer):
    """e / t, and zero at hidden keys."""

    removes = frozenset({"weights"})
    visible_alone = True

    def __init__(self, config: NoneConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.temperature = config.temperature

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Hide keys."""
        weights = energy / self.temperature
        return Normalized(weights if allowed is None else torch.where(allowed, weights, 0.0))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """One row by a loop."""
        zero = torch.zeros_like(energy[0])
        scaled = [e / self.temperature for e in energy]
        return torch.stack([e if open_ else zero for e, open_ in zip(scaled, allowed, strict=True)])
