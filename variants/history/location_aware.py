"""Location awareness: the score sees the weights of the step before, through convolutions.

Chorowski, Bahdanau, Serdyuk, Cho & Bengio, 2015, "Attention-based models for speech recognition",
https://arxiv.org/abs/1506.07503, section 2.2, equations 8 and 9.

Deviations: before the first query all weights are zero; with several heads each convolves its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.history import History
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Features, Weights
from bench.api.source import Memory, Tree, leaf


@dataclass(frozen=True, kw_only=True)
class LocationAwareConfig(Config):
    """Options of location awareness."""

    filters: Annotated[int, IntRange(1, 64, log=True)] = 10
    """Features k of every key, per head."""
    width: Annotated[int, IntRange(1, 201)] = 11
    """Keys that a filter sees, the key itself in the middle; odd (the paper has 201 frames)."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.filters < 1 or self.width < 1 or self.width % 2 == 0:
            raise InvalidConfig(
                "location_aware: filters must be at least 1 and width a positive odd number, "
                f"got {self.filters}, {self.width}."
            )


@register(
    "history",
    "location_aware",
    config=LocationAwareConfig,
    citation=Citation(
        text="Chorowski et al., 2015",
        url="https://arxiv.org/abs/1506.07503",
        where="section 2.2, equations 8 and 9",
    ),
)
class LocationAware(History):
    """f = F * w, where w are the last weights; time O(S k r) per step and head."""

    needs = frozenset({"weights", "takes_features"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "positions are compared among keys that are all there before the first query",
        "self": "positions are compared among keys that are all there before the first query",
        "pool": "it needs earlier weights, and pooling has one query",
    }

    def __init__(self, config: LocationAwareConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.heads = dims.heads
        self.num_features = config.filters
        self.filters = nn.Parameter(torch.empty(dims.heads, config.filters, config.width))
        # weights sum to one, so a feature is at most as large as the filter's largest tap
        nn.init.uniform_(self.filters, -1.0, 1.0)

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """Nothing has been attended to."""
        assert memory is not None, "location awareness works in cross attention only"
        key = memory.source.key
        return {"weights": key.new_zeros(like.rows, self.heads, key.shape[2])}

    def features(self, call: Call, state: Tree) -> Features:
        """Convolve the last weights."""
        # one group per head; filters are not flipped, as in every convolutional layer
        found = functional.conv1d(
            leaf(state, "weights"),
            self.filters.flatten(0, 1).unsqueeze(1),
            padding=self.filters.shape[2] // 2,
            groups=self.heads,
        )
        return found.unflatten(1, (self.heads, -1)).transpose(-1, -2).unsqueeze(2)

    def update(self, call: Call, weights: Bool[Tensor, "..."] | Weights, state: Tree) -> Tree:
        """Remember the weights of this query."""
        return {"weights": weights.squeeze(2)}

    def oracle_features(
        self, one: OneQuery, state: dict[str, list[Tensor]]
    ) -> Float[Tensor, "S F"]:
        """The convolution, key by key and tap by tap."""
        zeros = [one.key.new_zeros(()) for _ in range(one.num_keys)]
        last = state.setdefault("weights", zeros)
        filters = self.filters[one.head]
        count, width = filters.shape
        found = []
        for s in range(one.num_keys):
            units = []
            for unit in range(count):
                total = one.key.new_zeros(())
                for tap in range(width):
                    place = s + tap - width // 2
                    if 0 <= place < one.num_keys:
                        total = total + filters[unit, tap] * last[place]
                units.append(total)
            found.append(torch.stack(units))
        return torch.stack(found)

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: dict[str, list[Tensor]]
    ) -> None:
        """Remember them."""
        state["weights"] = list(weights)


register_recipe(
    "location_aware",
    Recipe(axes={"score": "additive", "history": "location_aware"}, main="history"),
    module=__name__,
    title="Additive attention that sees its last weights",
    citation=Citation(
        text="Chorowski et al., 2015", url="https://arxiv.org/abs/1506.07503", where="section 2.2"
    ),
    cost=1.8,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    deviations=(
        "those of the history `location_aware` and of the additive score. Sharpening is "
        "`normalizer=sharpened`."
    ),
)
