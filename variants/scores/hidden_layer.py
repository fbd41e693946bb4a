"""Scores with one hidden layer of tanh units over query and key."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.score import Score
from bench.api.shapes import Energy, Features
from bench.api.source import Source, Tree, leaf
from variants.per_head_linear import xavier_per_head
from variants.scores.tanh_sum import tanh_sum


@dataclass(frozen=True, kw_only=True)
class HiddenLayerConfig(Config):
    """Options of a score with one hidden layer."""

    named: ClassVar[str]
    """The score, for sentences about its options."""
    width: Annotated[int, IntRange(8, 1024, log=True)] = 64
    """Hidden units d_a, per head."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"{self.named}: width must be at least 1, got {self.width}.")


class HiddenLayerScore(Score):
    """v . tanh(query units + key units + features); a subclass maps queries and keys to units.

    Time O(L S d_a) and memory O(L S) per head.
    """

    gives = frozenset({"key_local", "takes_features"})
    v: nn.Parameter
    feature_map: nn.Parameter | None

    def make_output(self, heads: int, width: int) -> None:
        """Draw `v`; a subclass calls this once its maps are drawn."""
        self.v = nn.Parameter(torch.empty(heads, width, 1))
        nn.init.uniform_(self.v, -(width**-0.5), width**-0.5)

    def make_feature_map(self, dims: Dims, width: int) -> None:
        """Draw the map of per-key features, where there are any."""
        self.feature_map = None
        if dims.num_features:
            self.feature_map = nn.Parameter(xavier_per_head(dims.heads, dims.num_features, width))

    def query_units(self, query: Float[Tensor, "B H L Eq"]) -> Float[Tensor, "B H L D"]:
        """What queries add to the hidden units."""
        raise NotImplementedError

    def key_units(self, key: Float[Tensor, "B H S Ek"]) -> Float[Tensor, "B H S D"]:
        """What keys add to the hidden units."""
        raise NotImplementedError

    def output_vector(self) -> Float[Tensor, "H D 1"]:
        """Weights of the hidden units."""
        return self.v

    def flops(self, batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
        """An addition, a tanh (counted as one) and a multiply-add for each unit and pair."""
        return 4 * batch * heads * queries * keys * self.v.shape[1]

    def prepare(self, source: Source) -> Tree:
        """Project the keys, once per source; doubled, as `tanh_sum` expects them."""
        return {"key": 2 * self.key_units(expand_heads(source.key, self.v.shape[0]))}

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Perceptron of every query and key."""
        key = leaf(call.memory.parts, self.branch, "key")
        feature_map = None if self.feature_map is None else 2 * self.feature_map
        query = 2 * self.query_units(call.query)
        return tanh_sum(query, key, self.output_vector(), features, feature_map)
