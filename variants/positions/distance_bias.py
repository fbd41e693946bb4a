"""Distance bias: a learned number for each distance is added to the energy, one for all far keys.

Parikh et al., 2016, "A decomposable attention model for natural language inference",
https://arxiv.org/abs/1606.01933, section 3.4.

Deviations: one table per head; distances keep their sign, and each side has its own number for what
is far; `sign=false` is the other reading, one number for both sides.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, register
from variants.one_sequence import ONE_SEQUENCE
from variants.positions.relative_distances import diagonals, distances


@dataclass(frozen=True, kw_only=True)
class DistanceBiasConfig(Config):
    """Options of the distance bias."""

    clip: Annotated[int, IntRange(1, 64, log=True), Legal(0)] = 10
    """Distance beyond which all are alike (tokens)."""
    sign: bool = True
    """Whether keys before and after the query have numbers of their own."""

    def __post_init__(self) -> None:
        """Check the distance."""
        if self.clip < 0:
            raise InvalidConfig(f"distance_bias: clip must be at least 0, got {self.clip}.")


@register(
    "position",
    "distance_bias",
    title="Distance bias (Parikh)",
    config=DistanceBiasConfig,
    citation=Citation(
        text="Parikh et al., 2016",
        url="https://arxiv.org/abs/1606.01933",
        where="section 3.4",
    ),
)
class DistanceBias(Position):
    """d[i - j] is added to the energy, i - j clipped just beyond `clip`; time O(L S) per head."""

    unsupported = ONE_SEQUENCE
    changes_energy = True
    by_place = True

    starts = {"table": 0.0}  # no distance is preferred

    def __init__(self, config: DistanceBiasConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.far = config.clip + 1
        self.sign = config.sign
        self.table = nn.Parameter(
            torch.zeros(dims.heads, 2 * self.far + 1 if self.sign else self.far + 1)
        )

    def energy(self, call: Call) -> Float[Tensor, "1 Hq L S"]:
        """Look up the number of every distance that occurs."""
        distance = -distances(call)  # query minus key
        row = (distance if self.sign else distance.abs()).clamp(-self.far, self.far)
        return diagonals(self.table[:, row + self.far if self.sign else row], call)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One number per key."""
        found = []
        for s in range(one.num_keys):
            distance = one.position - s
            distance = min(distance, self.far)
            distance = max(distance, -self.far)
            row = distance + self.far if self.sign else abs(distance)
            found.append(self.table[one.head, row])
        return torch.stack(found)
