"""Coverage: the score sees how much attention each key has had.

Tu et al., 2016, "Modeling coverage for neural machine translation",
https://arxiv.org/abs/1601.04811, section 3.1: linguistic coverage is the sum of earlier weights
over a predicted fertility; neural coverage is a small recurrent network for each key.

Deviations: the gated unit has PyTorch's form, which resets after the product with the old state,
without biases there; 1e-8 is added to fertility; each head has its own coverage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import Choices, Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.heads import expand_heads
from bench.api.history import History
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Features, Weights
from bench.api.source import Memory, Source, Tree, leaf
from variants.per_head_linear import per_head_linear, xavier_per_head

EPS = 1e-8


@dataclass(frozen=True, kw_only=True)
class TuCoverageConfig(Config):
    """Options of coverage."""

    kind: Annotated[Literal["neural", "linguistic"], Choices(("neural", "linguistic"))] = "neural"
    """A recurrent network for each key, or the sum of weights over fertility."""
    width: Annotated[int, IntRange(1, 64, log=True)] = 10
    """Units of neural coverage, per key and head."""
    max_fertility: Annotated[float, FloatRange(1.0, 5.0)] = 2.0
    """Largest fertility N of linguistic coverage (target words per key)."""

    def __post_init__(self) -> None:
        """Check sizes."""
        if self.width < 1:
            raise InvalidConfig(f"tu_coverage: width must be at least 1, got {self.width}.")
        if self.max_fertility <= 0:
            raise InvalidConfig(
                f"tu_coverage: max_fertility must be positive, got {self.max_fertility}."
            )


@register(
    "history",
    "tu_coverage",
    config=TuCoverageConfig,
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 3.1"
    ),
)
class TuCoverage(History):
    """C' = GRU(C, [weight; key; query]) or C' = C + weight / (N sigmoid(U key)), for each key.

    What depends on the key is computed once per source; time O(S d^2) per step and head.
    """

    needs = frozenset({"weights", "takes_features"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "coverage needs all keys before the first query",
        "self": "coverage needs all keys before the first query",
        "pool": "coverage is made of earlier weights, and pooling has one query",
    }

    starts = {"bias": 0.0}

    def __init__(self, config: TuCoverageConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.heads = dims.heads
        self.neural = config.kind == "neural"
        self.max_fertility = config.max_fertility
        self.num_features = config.width if self.neural else 1
        gates = 3 * config.width if self.neural else 1
        self.key_map = nn.Parameter(xavier_per_head(dims.heads, dims.key_width, gates))
        self.bias = nn.Parameter(torch.zeros(dims.heads, 1, gates))
        if self.neural:
            self.query_map = nn.Parameter(xavier_per_head(dims.heads, dims.query_width, gates))
            self.weight_map = nn.Parameter(xavier_per_head(dims.heads, 1, gates))
            self.state_map = nn.Parameter(xavier_per_head(dims.heads, config.width, gates))

    def prepare(self, source: Source) -> Tree:
        """Compute the key's part of the gates, or its fertility."""
        key = expand_heads(source.key, self.heads)
        key = per_head_linear(key, self.key_map) + self.bias
        return {"key": key if self.neural else self.max_fertility * torch.sigmoid(key) + EPS}

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """Nothing is covered."""
        assert memory is not None, "coverage works in cross attention only"
        key = leaf(memory.parts, self.branch, "key")
        return {"coverage": key.new_zeros(*key.shape[:3], self.num_features)}

    def features(self, call: Call, state: Tree) -> Features:
        """Coverage before this query."""
        return leaf(state, "coverage").unsqueeze(2)

    def update(self, call: Call, weights: Weights, state: Tree) -> Tree:
        """Coverage after this query."""
        coverage, key = leaf(state, "coverage"), leaf(call.memory.parts, self.branch, "key")
        weight = weights.transpose(-1, -2)
        if not self.neural:
            return {"coverage": coverage + weight / key}
        query = per_head_linear(call.query, self.query_map)
        given = (key + query + per_head_linear(weight, self.weight_map)).chunk(3, -1)
        recurrent = per_head_linear(coverage, self.state_map).chunk(3, -1)
        reset = torch.sigmoid(given[0] + recurrent[0])
        keep = torch.sigmoid(given[1] + recurrent[1])
        fresh = torch.tanh(given[2] + reset * recurrent[2])
        return {"coverage": fresh + keep * (coverage - fresh)}

    def oracle_features(
        self, one: OneQuery, state: dict[str, list[Tensor]]
    ) -> Float[Tensor, "S F"]:
        """Coverage before this query, zero at first."""
        nothing = [one.key.new_zeros(self.num_features) for _ in range(one.num_keys)]
        return torch.stack(state.setdefault("coverage", nothing))

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: dict[str, list[Tensor]]
    ) -> None:
        """Add to each key's sum, or run each key's network, unit by unit."""
        step = self._oracle_neural if self.neural else self._oracle_linguistic
        state["coverage"] = [
            step(one, one.key[s], weights[s], state["coverage"][s]) for s in range(one.num_keys)
        ]

    def _oracle_linguistic(self, one: OneQuery, key: Tensor, weight: Tensor, old: Tensor) -> Tensor:
        logit = key @ self.key_map[one.head, :, 0] + self.bias[one.head, 0, 0]
        return old + weight / (self.max_fertility / (1 + torch.exp(-logit)) + EPS)

    def _oracle_neural(self, one: OneQuery, key: Tensor, weight: Tensor, old: Tensor) -> Tensor:
        width, head = self.num_features, one.head
        found = []
        for unit in range(width):
            given, recurrent = [], []
            for gate in (unit, width + unit, 2 * width + unit):
                given.append(
                    key @ self.key_map[head, :, gate]
                    + one.query @ self.query_map[head, :, gate]
                    + weight * self.weight_map[head, 0, gate]
                    + self.bias[head, 0, gate]
                )
                recurrent.append(old @ self.state_map[head, :, gate])
            reset = 1 / (1 + torch.exp(-given[0] - recurrent[0]))
            keep = 1 / (1 + torch.exp(-given[1] - recurrent[1]))
            fresh = torch.tanh(given[2] + reset * recurrent[2])
            found.append((1 - keep) * fresh + keep * old[unit])
        return torch.stack(found)


register_recipe(
    "tu_coverage",
    Recipe(axes={"score": "additive", "history": "tu_coverage"}, main="history"),
    module=__name__,
    title="Additive attention with coverage",
    citation=Citation(
        text="Tu et al., 2016", url="https://arxiv.org/abs/1601.04811", where="section 3.1"
    ),
    cost=2.2,
    default_task=DefaultTask(task="transduction[rule=fert]"),
    deviations="those of the history `tu_coverage` and of the additive score.",
)
