"""Sparsemax: the point of the simplex nearest to the energies, which is zero at far keys.

Martins & Astudillo, 2016, "From softmax to sparsemax", https://arxiv.org/abs/1602.02068, section 2,
algorithm 1; computed by the authors' group's library `entmax`.

Deviations: the temperature is not in the paper.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import entmax
import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.component import Normalized, Normalizer, OneQuery
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, register
from bench.api.shapes import Allowed, Energy
from bench.api.source import Tree
from variants.normalizers.sparse_weights import sparse_weights

FAR = 1.0
"""A key this far below the best one has no weight, for the threshold lies at most 1 below it."""


@dataclass(frozen=True, kw_only=True)
class SparsemaxConfig(Config):
    """Options of sparsemax."""

    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """What energies are divided by (dimensionless); lower is sparser."""

    def __post_init__(self) -> None:
        """Check the temperature."""
        if self.temperature <= 0:
            raise InvalidConfig(f"sparsemax: temperature must be above 0, got {self.temperature}.")


@register(
    "normalizer",
    "sparsemax",
    config=SparsemaxConfig,
    title="Euclidean projection onto the simplex, zero at far keys",
    citation=Citation(
        text="Martins & Astudillo, 2016",
        url="https://arxiv.org/abs/1602.02068",
        where="section 2, algorithm 1",
    ),
    default_task=DefaultTask(task="recall"),
    cost=1.3,
)
class SparsemaxNormalizer(Normalizer):
    """max(e - tau, 0) with tau such that a row sums to one; time O(L S log S) per head."""

    gives = frozenset({"simplex"})

    def __init__(self, config: SparsemaxConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.temperature = config.temperature

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Project each row."""
        energy = energy / self.temperature
        return Normalized(sparse_weights(entmax.sparsemax, energy, allowed, alpha=2.0, far=FAR))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, Any],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Take keys in from the best one down while the threshold stays below them."""
        scaled = [e / self.temperature for e in energy]
        best = sorted((e for e, a in zip(scaled, allowed, strict=True) if a), reverse=True)
        total = torch.zeros_like(energy[0])
        threshold = total
        for count, e in enumerate(best, 1):
            if float((total + e - count * e).detach()) >= 1:
                break
            total = total + e
            threshold = (total - 1) / count
        zero = torch.zeros_like(energy[0])
        return torch.stack(
            [
                e - threshold if a and float((e - threshold).detach()) > 0 else zero
                for e, a in zip(scaled, allowed, strict=True)
            ]
        )
