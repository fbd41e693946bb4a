"""Random score (control): fixed random energies for each pair of positions.

No paper: the control of attention with structure but without content. Energies are standard normal
and depend on the seed, the head and the two positions only, so that training, evaluation, every
batch and every split of the queries see the same ones.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.noise import Noise
from bench.api.one_query import OneQuery
from bench.api.registry import DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Energy, Features

STREAM = "score.random"


@dataclass(frozen=True, kw_only=True)
class RandomConfig(Config):
    """Options of the random score."""

    seed: Annotated[int, IntRange(0, 1000)] = 0
    """Seed of the draws, apart from the seed of training."""

    def __post_init__(self) -> None:
        """Check the seed."""
        if self.seed < 0:
            raise InvalidConfig(f"random: seed must be at least 0, got {self.seed}.")


@register(
    "score",
    "random",
    title="Fixed random weights (control)",
    config=RandomConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    control="negative",
)
class RandomScore(Score):
    """A standard normal draw for every pair of positions; no parameters; time O(L S) per head.

    It is not key-local: a gathered key would get the draw of its new position.
    """

    def __init__(self, config: RandomConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.noise = Noise(config.seed)

    def energy(self, call: Call, features: Features | None) -> Energy:
        """One draw a head and pair of positions, the same in every row."""
        rows, heads = call.query.shape[:2]
        num_keys = call.memory.num_keys
        drawn = self.noise.normal(STREAM, 1, heads, call.position, num_keys)
        return drawn.to(call.query.dtype).expand(rows, -1, -1, -1)

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """One draw a key; asking for fewer keys or heads does not change a draw."""
        place = torch.tensor([one.position], device=one.query.device)
        found = []
        for s in range(one.num_keys):
            drawn = self.noise.normal(STREAM, 1, one.head + 1, place, s + 1)
            found.append(drawn[0, one.head, 0, s].to(one.query.dtype))
        return torch.stack(found)
