"""Markov condition: the score sees the weights of a key and its neighbors in the step before.

Cohn et al., 2016, "Incorporating structural alignment biases into an attentional neural
translation model", https://arxiv.org/abs/1601.01085, section 3.2.

Deviations: none. The window defaults to one neighbor on each side, as in the released code.
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
from bench.api.source import Tree
from variants.history.neighbors import Neighbors, NeighborsConfig


@dataclass(frozen=True, kw_only=True)
class CohnMarkovConfig(NeighborsConfig):
    """Options of the Markov condition."""

    named: ClassVar[str] = "cohn_markov"


@register(
    "history",
    "cohn_markov",
    config=CohnMarkovConfig,
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.2"
    ),
)
class CohnMarkov(Neighbors):
    """Features of key s are the last weights of keys s - k ... s + k, zeros at first."""

    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "it needs weights over a source that does not grow from step to step",
        "self": "it needs the weights of the last step, and bidirectional self-attention has none",
        "pool": "it needs the weights of the step before, and pooling has one query",
    }

    def update(self, call: Call, weights: Weights, state: Tree) -> Tree:
        """Remember this step's weights."""
        return {"numbers": weights.squeeze(2)}

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: dict[str, list[Tensor]]
    ) -> None:
        """Keep the weights."""
        state["numbers"] = [weights[s] for s in range(one.num_keys)]


register_recipe(
    "cohn_markov",
    Recipe(axes={"score": "additive", "history": "cohn_markov"}, main="history"),
    module=__name__,
    title="Additive attention with the Markov condition",
    citation=Citation(
        text="Cohn et al., 2016", url="https://arxiv.org/abs/1601.01085", where="section 3.2"
    ),
    cost=1.9,
    default_task=DefaultTask(task="transduction[rule=fert]"),
    deviations="those of the history component `cohn_markov` and of the additive score.",
)
