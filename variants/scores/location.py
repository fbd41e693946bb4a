"""Location-based score: the query alone predicts the energy of each position, whatever the keys.

Luong et al., 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1, equation 8: a short sentence uses the first part of
the energies, and words of a long one beyond the last energy are ignored.

Deviations: softmax runs over the positions that exist, so that weights sum to one for every length;
with several heads each has its own matrix. It starts uniform in [-0.1, 0.1] (section 4.1).
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, register
from bench.api.score import Score
from bench.api.shapes import Allowed, Energy, Features
from variants.per_head_linear import per_head_linear, uniform_per_head


@dataclass(frozen=True, kw_only=True)
class LocationConfig(Config):
    """Options of the location-based score."""

    max_keys: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Positions that have an energy; keys from this position on get no weight."""

    def __post_init__(self) -> None:
        """Check the number of positions."""
        if self.max_keys < 1:
            raise InvalidConfig(f"location: max_keys must be at least 1, got {self.max_keys}.")


@register(
    "score",
    "location",
    title="Location-based score",
    revision=2,
    config=LocationConfig,
    citation=Citation(
        text="Luong et al., 2015",
        url="https://arxiv.org/abs/1508.04025",
        where="section 3.1, equation 8",
    ),
    cost=1.15,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Luong et al. report 18.1 BLEU for it and 18.6 for the dot product, after training on 4.5 "
        "million sentence pairs, so the paper claims no gain either. Energies belong to positions "
        "and not to words. This task tests strings longer than those of training, at positions "
        "whose energies have never been trained."
    ),
)
class LocationScore(Score):
    """(W q)_s for position s below `max_keys`; keys are not used; time O(L max_keys Eq) per head.

    It is not key-local: a gathered key would get the energy of its new position.
    """

    def __init__(self, config: LocationConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.max_keys = config.max_keys
        self.weight = nn.Parameter(uniform_per_head(dims.heads, dims.query_width, config.max_keys))

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Project each query to its energies, cut to the keys there are."""
        num_keys = call.memory.num_keys
        found = per_head_linear(call.query, self.weight)[..., :num_keys]
        return functional.pad(found, (0, num_keys - found.shape[3]))

    def scored(self, call: Call) -> Allowed | None:
        """The first positions; every key where the source is no longer."""
        if call.memory.num_keys <= self.max_keys:
            return None
        return (call.key_position < self.max_keys)[None, None, None]

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """One dot product a position; unused zeros beyond the last."""
        found = []
        for s in range(one.num_keys):
            total = one.query.new_zeros(())
            for e in range(one.query.shape[0] if s < self.max_keys else 0):
                total = total + one.query[e] * self.weight[one.head, e, s]
            found.append(total)
        return torch.stack(found)

    def oracle_scored(self, one: OneQuery) -> list[bool]:
        """The first positions."""
        return [s < self.max_keys for s in range(one.num_keys)]
