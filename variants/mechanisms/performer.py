"""Performer: random features whose products have the exponential of the energy as their mean.

Choromanski et al., 2021, "Rethinking attention with performers", https://arxiv.org/abs/2009.14794,
section 2 (FAVOR+) and lemma 1.

Deviations: the directions are drawn once, from the option `seed`, and are not drawn again during
training. Features of a query are divided by their largest, which cancels out. The authors' code
divides those of keys by the largest of all keys, which would look ahead; here they are not divided,
and those of long keys are small. So 1e-30 is added to the sum of weights, where the authors add
1e-6 to every feature. Weights that sum to less than 1e-30 fade to zero.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.impl import Impl
from bench.api.registry import Citation, DefaultTask, register
from variants.mechanisms.feature_attention import FeatureAttention
from variants.mechanisms.turned import Turned


@dataclass(frozen=True, kw_only=True)
class PerformerConfig(Config):
    """Options of the performer."""

    directions: Annotated[int, IntRange(4, 512, log=True)] = 64
    """Random directions, m; the paper takes about E log E."""
    seed: int = 0
    """Seed from which the directions are drawn."""

    def __post_init__(self) -> None:
        """Check the number of directions."""
        if self.directions < 1:
            raise InvalidConfig(f"performer: directions must be positive, got {self.directions}.")


@register(
    "mechanism",
    "performer",
    title="Performer (FAVOR+)",
    config=PerformerConfig,
    citation=Citation(
        text="Choromanski et al., 2021",
        url="https://arxiv.org/abs/2009.14794",
        where="section 2, lemma 1",
    ),
    cost=1.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Choromanski et al. report softmax attention at linear cost over long sequences, such as "
        "pictures of 12,288 values, and no gain of quality over it. Sequences of this task have at "
        "most 128 symbols, and random features only estimate its weights. Costs are in the tables "
        "of speed."
    ),
)
class Performer(Turned, FeatureAttention):
    """f(x) = exp(w_i . x - |x|^2 / 2) / sqrt(m), x divided by E^(1/4), w_i orthogonal directions.

    The mean of f(q).f(k) over directions is exp(q.k / sqrt(E)). Time O((L + S) m (E + Ev)) a head.
    """

    eps = 1e-30
    """Less than the sum of weights of long keys; its inverse is finite in float32."""
    directions: Float[Tensor, "F E"]

    def __init__(self, config: PerformerConfig, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__(dims, impl, config.directions)
        drawn = orthogonal_directions(config.directions, dims.key_width, config.seed)
        self.register_buffer("directions", drawn)

    def of_keys(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """exp(w.x - |x|^2 / 2) of every direction."""
        return self._exponents(x).exp() * self.num_maps**-0.5

    def of_queries(
        self, x: Float[Tensor, "B H n E"], place: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n F"]:
        """The same, divided by the largest of each query."""
        exponents = self._exponents(x)
        largest = exponents.detach().amax(-1, keepdim=True)
        return (exponents - largest).exp() * self.num_maps**-0.5

    def _exponents(self, x: Float[Tensor, "B H n E"]) -> Float[Tensor, "B H n F"]:
        scaled = x * self.dims.key_width**-0.25
        norm = scaled.square().sum(-1, keepdim=True)
        return scaled @ self.directions.to(x.dtype).T - norm / 2

    def oracle_of_key(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Direction by direction."""
        return torch.stack([torch.exp(e) for e in self._oracle_exponents(x)]) / self.num_maps**0.5

    def oracle_of_query(self, x: Float[Tensor, " E"], place: int, head: int) -> Float[Tensor, " F"]:
        """Direction by direction, divided by the largest."""
        exponents = self._oracle_exponents(x)
        largest = max(float(e.detach()) for e in exponents)
        return torch.stack([torch.exp(e - largest) for e in exponents]) / self.num_maps**0.5

    def _oracle_exponents(self, x: Float[Tensor, " E"]) -> list[Tensor]:
        width = len(x)
        scaled = [unit / width**0.25 for unit in x]
        half = sum((unit * unit for unit in scaled), x.new_zeros(())) / 2
        return [
            sum((w[e] * scaled[e] for e in range(width)), x.new_zeros(())) - half
            for w in self.directions.to(x.dtype)
        ]


def orthogonal_directions(count: int, width: int, seed: int) -> Float[Tensor, "F E"]:
    """Directions that are orthogonal within each block of `width`, as long as normal vectors are.

    Each is by itself a standard normal vector, so that the estimate has no bias.
    """
    rng = torch.Generator().manual_seed(seed)
    blocks = []
    for _ in range(-(-count // width)):
        normal = torch.randn(width, width, generator=rng, dtype=torch.float64)
        orthogonal, upper = torch.linalg.qr(normal)
        # without the signs of the diagonal, the rotation is not uniform
        orthogonal = orthogonal * upper.diagonal().sign()
        lengths = torch.randn(width, width, generator=rng, dtype=torch.float64).norm(dim=1)
        blocks.append(orthogonal.T * lengths[:, None])
    return torch.cat(blocks)[:count].float()
