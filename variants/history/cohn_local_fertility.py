"""Local fertility: the score sees the summed earlier weights of a key and its neighbors.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.3.

Deviations: none. The window defaults to one neighbor on each side, as in the released code; with
`window=0` the one feature is the coverage of See et al., 2017, https://arxiv.org/abs/1704.04368.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.component import History, OneQuery
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Features, Weights
from bench.api.source import Memory, Tree, leaf
from variants.history.neighbors import beside, oracle_beside


@dataclass(frozen=True, kw_only=True)
class CohnLocalFertilityConfig(Config):
    """Options of local fertility."""

    window: Annotated[int, IntRange(0, 8)] = 1
    """Neighbors seen on each side of a key, k (keys)."""

    def __post_init__(self) -> None:
        """Check the window."""
        if self.window < 0:
            raise InvalidConfig(
                f"cohn_local_fertility: window must be at least 0, got {self.window}."
            )


@register(
    "history",
    "cohn_local_fertility",
    config=CohnLocalFertilityConfig,
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
)
class CohnLocalFertility(History):
    """Features of key s are the summed earlier weights of keys s - k ... s + k."""

    needs = frozenset({"weights", "takes_features"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "it sums weights over a source that does not grow from step to step",
        "self": "it sums the weights of earlier steps, and bidirectional self-attention has none",
        "pool": "it sums the weights of earlier steps, and pooling has one query",
    }

    def __init__(self, config: CohnLocalFertilityConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.reach = config.window
        self.num_features = 2 * config.window + 1

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """Nothing is covered."""
        assert memory is not None, "it works in cross attention only"
        keys = memory.source.key.shape[2]
        shape = (like.rows, like.heads, keys)
        return {"coverage": torch.zeros(shape, dtype=like.dtype, device=like.device)}

    def features(self, call: Call, state: Tree) -> Features:
        """Coverage before this query, in windows."""
        return beside(leaf(state, "coverage"), self.reach).unsqueeze(2)

    def update(self, call: Call, weights: Weights, state: Tree) -> Tree:
        """Add this step's weights."""
        return {"coverage": leaf(state, "coverage") + weights.squeeze(2)}

    def oracle_features(self, one: OneQuery, state: dict[str, Any]) -> Float[Tensor, "S F"]:
        """Each key's window, number by number."""
        nothing = [one.key.new_zeros(()) for _ in range(one.num_keys)]
        covered = state.get("coverage", nothing)
        rows = [torch.stack(oracle_beside(covered, s, self.reach)) for s in range(one.num_keys)]
        return torch.stack(rows)

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: dict[str, Any]
    ) -> None:
        """Add to each key's sum."""
        nothing = [one.key.new_zeros(()) for _ in range(one.num_keys)]
        before = state.get("coverage", nothing)
        state["coverage"] = [before[s] + weights[s] for s in range(one.num_keys)]


register_recipe(
    "cohn_local_fertility",
    Recipe(axes={"score": "additive", "history": "cohn_local_fertility"}, main="history"),
    module=__name__,
    title="Additive attention with local fertility",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=fert]"),
    deviations="those of the history component `cohn_local_fertility` and of the additive score.",
)
