"""Say in one sentence what the score hears of earlier weights; here those just before.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims, QueryShape
from bench.api.capabilities import Capability
from bench.api.config import NoOptions
from bench.api.history import History
from bench.api.one_query import OneQuery, OracleState
from bench.api.registry import DefaultTask, Recipe, register, register_recipe
from bench.api.shapes import Features, Weights
from bench.api.source import Memory, Tree, leaf


@register("history", "new_name", title="The name that tables print")
class NewNameHistory(History):
    """The feature of key s is its weight one step before, zero at first."""

    needs = frozenset({"weights", "takes_features"})
    unsupported: ClassVar[Mapping[Capability, str]] = {
        "causal": "it looks back at weights over a source that does not grow from step to step",
        "self": "it looks back at the step before, and bidirectional self-attention has no steps",
        "pool": "it looks back at the step before, and pooling asks once",
    }
    num_features = 1

    def __init__(self, config: NoOptions, dims: Dims) -> None:
        super().__init__(config, dims)

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """Nothing has been looked at."""
        assert memory is not None, "it stands in cross attention only"
        shape = (like.rows, like.heads, memory.num_keys)
        return {"weights": torch.zeros(shape, dtype=like.dtype, device=like.device)}

    def features(self, call: Call, state: Tree) -> Features:
        """One number for each key."""
        return leaf(state, "weights")[:, :, None, :, None]

    def update(self, call: Call, weights: Weights, state: Tree) -> Tree:
        """Remember this step's weights."""
        return {"weights": weights.squeeze(2)}

    def oracle_features(self, one: OneQuery, state: OracleState) -> Float[Tensor, "S F"]:
        """The same for one query; written from the paper, not from `features`."""
        nothing = [one.key.new_zeros(()) for _ in range(one.num_keys)]
        return torch.stack([weight.reshape(1) for weight in state.get("weights", nothing)])

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: OracleState
    ) -> None:
        """Keep the weights."""
        state["weights"] = [weights[s] for s in range(one.num_keys)]


# the history alone has no score that takes its features; this is the variant that is listed
register_recipe(
    "new_name",
    Recipe(axes={"score": "additive", "history": "new_name"}, main="history"),
    module=__name__,
    title="The name that tables print",
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
