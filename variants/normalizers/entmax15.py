"""1.5-entmax: half way between softmax and sparsemax, smooth and yet zero at far keys.

Peters, Niculae & Martins, 2019, "Sparse sequence-to-sequence models",
https://arxiv.org/abs/1905.05702, section 3 and algorithm 2; computed by the authors' library
`entmax`.

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

FAR = 2.0
"""A key this far below the best one has no weight: of halved energies, 1 below is too far."""


@dataclass(frozen=True, kw_only=True)
class Entmax15Config(Config):
    """Options of 1.5-entmax."""

    temperature: Annotated[float, FloatRange(0.1, 10.0, log=True)] = 1.0
    """What energies are divided by (dimensionless); lower is sparser."""

    def __post_init__(self) -> None:
        """Check the temperature."""
        if self.temperature <= 0:
            raise InvalidConfig(f"entmax15: temperature must be above 0, got {self.temperature}.")


@register(
    "normalizer",
    "entmax15",
    config=Entmax15Config,
    title="Half way from softmax to sparsemax",
    citation=Citation(
        text="Peters et al., 2019",
        url="https://arxiv.org/abs/1905.05702",
        where="section 3, algorithm 2",
    ),
    default_task=DefaultTask(task="recall"),
    cost=1.3,
)
class Entmax15Normalizer(Normalizer):
    """max(e / 2 - tau, 0)^2 with tau such that a row sums to one; time O(L S log S) per head."""

    gives = frozenset({"simplex"})

    def __init__(self, config: Entmax15Config, dims: Dims) -> None:
        super().__init__(config, dims)
        self.temperature = config.temperature

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Normalize each row."""
        energy = energy / self.temperature
        return Normalized(sparse_weights(entmax.entmax15, energy, allowed, alpha=1.5, far=FAR))

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: dict[str, Any],
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """Solve sum (z - tau)^2 = 1 for growing sets of the best keys, until the next is below."""
        half = [e / self.temperature / 2 for e in energy]
        best = sorted((z for z, a in zip(half, allowed, strict=True) if a), reverse=True)
        zero = torch.zeros_like(energy[0])
        threshold = zero
        for count in range(1, len(best) + 1):
            linear = sum(best[:count], zero)
            square = sum((z * z for z in best[:count]), zero)
            # the smaller root of count tau^2 - 2 linear tau + square - 1
            inside = linear * linear - count * (square - 1)
            if float(inside.detach()) < 0:
                break
            threshold = (linear - torch.sqrt(inside)) / count
            if count < len(best) and float((best[count] - threshold).detach()) <= 0:
                break
        return torch.stack(
            [
                (z - threshold) ** 2 if a and float((z - threshold).detach()) > 0 else zero
                for z, a in zip(half, allowed, strict=True)
            ]
        )
