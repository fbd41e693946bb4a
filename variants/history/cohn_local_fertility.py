"""Local fertility: the score sees the summed earlier weights of a key and its neighbors.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.3.

Deviations: none. The window defaults to one neighbor on each side, as in the released code; with
`window=0` the one feature is the coverage of See et al., 2017, https://arxiv.org/abs/1704.04368.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call
from bench.api.capabilities import Capability
from bench.api.one_query import OneQuery
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Weights
from bench.api.source import Tree, leaf
from variants.history.neighbors import Neighbors, NeighborsConfig


@dataclass(frozen=True, kw_only=True)
class CohnLocalFertilityConfig(NeighborsConfig):
    """Options of local fertility."""

    named: ClassVar[str] = "cohn_local_fertility"


@register(
    "history",
    "cohn_local_fertility",
    config=CohnLocalFertilityConfig,
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.3"
    ),
)
class CohnLocalFertility(Neighbors):
    """Features of key s are the summed earlier weights of keys s - k ... s + k."""

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "it sums weights over a source that does not grow from step to step",
        "self": "it sums the weights of earlier steps, and bidirectional self-attention has none",
        "pool": "it sums the weights of earlier steps, and pooling has one query",
    }

    def update(self, call: Call, weights: Weights, state: Tree) -> Tree:
        """Add this step's weights."""
        return {"numbers": leaf(state, "numbers") + weights.squeeze(2)}

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: dict[str, list[Tensor]]
    ) -> None:
        """Add to each key's sum."""
        before = self.oracle_numbers(one, state)
        state["numbers"] = [before[s] + weights[s] for s in range(one.num_keys)]


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
