"""T5 bias: a learned number for each bucket of distances, exact when near and logarithmic when far.

Raffel et al., 2020, "Exploring the limits of transfer learning with a unified text-to-text
transformer", https://arxiv.org/abs/1910.10683, section 2.1.

Deviations: every layer has its own table, which T5 shares. Energies keep the scale of the score;
T5 leaves the scale out, which is `dot[position=t5_bias]`. The table starts normal with a
deviation of D^-1/2, as in the Hugging Face port.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.position import Position
from bench.api.registry import Citation, DefaultTask, register
from variants.one_sequence import ONE_SEQUENCE
from variants.positions.relative_distances import diagonals, distances


@dataclass(frozen=True, kw_only=True)
class T5BiasConfig(Config):
    """Options of the T5 bias."""

    buckets: Annotated[int, IntRange(8, 128, log=True)] = 32
    """Numbers a head; both directions share them under self-attention in both directions."""
    far: Annotated[int, IntRange(16, 1024, log=True)] = 128
    """Distance from which on all are alike (tokens)."""

    def __post_init__(self) -> None:
        """Check that there are exact buckets, and that the others lie beyond them."""
        if self.buckets < 4 or self.buckets % 4:
            raise InvalidConfig(
                f"t5_bias: buckets must be a multiple of 4, at least 4, got {self.buckets}."
            )
        if self.far <= self.buckets // 2:
            raise InvalidConfig(
                f"t5_bias: far must be more than half of the buckets, got {self.far} and "
                f"{self.buckets}."
            )


@register(
    "position",
    "t5_bias",
    title="Bucketed distance bias (T5)",
    config=T5BiasConfig,
    citation=Citation(
        text="Raffel et al., 2020", url="https://arxiv.org/abs/1910.10683", where="section 2.1"
    ),
    cost=1.1,
    default_task=DefaultTask(task="offset"),
)
class T5Bias(Position):
    """b_h[bucket(j - i)] is added to the energy.

    The first half of the buckets holds one distance each, the others grow with the distance up to
    `far`. In both directions each sign has half of the buckets. Time O(L S) per head.
    """

    unsupported = ONE_SEQUENCE
    changes_energy = True
    by_place = True
    row_of: Int[Tensor, " n"]

    def __init__(self, config: T5BiasConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.both = dims.regime != "causal"
        self.buckets, self.far = config.buckets, config.far
        self.table = nn.Parameter(torch.randn(dims.heads, config.buckets) * dims.model_width**-0.5)
        side = config.buckets // 2 if self.both else config.buckets
        rows = [_bucket(distance, side, config.far) for distance in range(config.far + 1)]
        self.register_buffer("row_of", torch.tensor(rows), persistent=False)

    def energy(self, call: Call) -> Float[Tensor, "1 Hq L S"]:
        """Look up the bucket of every distance that occurs."""
        distance = distances(call)
        if self.both:
            row = self.row_of[distance.abs().clamp(max=self.far)]
            row = row + (distance > 0) * (self.buckets // 2)
        else:
            row = self.row_of[(-distance).clamp(0, self.far)]
        return diagonals(self.table[:, row], call)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """One bucket per key, found by going through their borders."""
        found = []
        for s in range(one.num_keys):
            side = self.buckets // 2 if self.both else self.buckets
            first = side if self.both and s > one.position else 0
            distance = abs(one.position - s) if self.both else max(0, one.position - s)
            exact = side // 2
            row = min(distance, exact)
            while row >= exact and row < side - 1:
                border = exact * (self.far / exact) ** ((row + 1 - exact) / (side - exact))
                if distance < border - 1e-9:
                    break
                row += 1
            found.append(self.table[one.head, first + row])
        return torch.stack(found)


def _bucket(distance: int, buckets: int, far: int) -> int:
    """The bucket of a distance without sign, in whole numbers, so that no border is rounded."""
    exact = buckets // 2
    if distance < exact:
        return distance
    wide = buckets - exact
    row = 0
    # the border of the next bucket is exact * (far / exact) ** ((row + 1) / wide)
    while distance**wide * exact ** (row + 1) >= far ** (row + 1) * exact**wide:
        row += 1
    return min(exact + row, buckets - 1)
