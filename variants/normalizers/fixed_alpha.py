"""Alpha-entmax of one fixed alpha: what sparsemax and 1.5-entmax share."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.api.one_query import OneQuery
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Tree
from variants.normalizers.sparse_weights import sparse_weights


@dataclass(frozen=True, kw_only=True)
class FixedAlphaConfig(Config):
    """Options of entmax with a fixed alpha."""

    named: ClassVar[str]
    """The normalizer, for sentences about its options."""
    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """What energies are divided by (dimensionless); lower is sparser."""

    def __post_init__(self) -> None:
        """Check the temperature."""
        if self.temperature <= 0:
            raise InvalidConfig(
                f"{self.named}: temperature must be above 0, got {self.temperature}."
            )


class FixedAlpha(Normalizer):
    """max((alpha - 1) e - tau, 0)^(1 / (alpha - 1)) with tau such that a row sums to one.

    A subclass names alpha and finds the weights and, for the oracle, tau.
    """

    gives = frozenset({"simplex"})
    visible_alone = True
    alpha: ClassVar[float]

    def __init__(self, config: FixedAlphaConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.temperature = config.temperature

    def solve(self, energy: Energy) -> Weights:
        """Weights along the last dimension; their gradient is not used."""
        raise NotImplementedError

    def oracle_threshold(self, best: list[Tensor], zero: Tensor) -> Tensor:
        """Tau of the energies times alpha - 1, the largest first."""
        raise NotImplementedError

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row."""
        # a key this far below the best one has no weight: tau is at most 1 below it
        far = 1 / (self.alpha - 1)
        energy = energy / self.temperature
        return Normalized(sparse_weights(self.solve, energy, allowed, alpha=self.alpha, far=far))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, object],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Find tau from the sorted energies, then subtract it key by key."""
        zero = torch.zeros_like(energy[0])
        scaled = [(self.alpha - 1) * e / self.temperature for e in energy]
        best = sorted((z for z, a in zip(scaled, allowed, strict=True) if a), reverse=True)
        threshold = self.oracle_threshold(best, zero)
        power = 1 / (self.alpha - 1)
        return torch.stack(
            [
                (z - threshold) ** power if a and float((z - threshold).detach()) > 0 else zero
                for z, a in zip(scaled, allowed, strict=True)
            ]
        )
