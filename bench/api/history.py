"""Attention histories: what earlier weights tell the next query."""

from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call
from bench.api.component import Component
from bench.api.one_query import OneQuery, OracleState
from bench.api.shapes import Features, Weights
from bench.api.source import Tree


class History(Component):
    """What goes back from the weights into the next step's score."""

    branch = "history0"
    # what is carried is about every key, and a walk that streams has not seen them all
    removes = frozenset({"stream"})
    feeds_back: ClassVar[bool] = True
    num_features: int = 0
    """Per-key features handed to the score."""

    def advance(self, call: Call, state: Tree) -> Tree:
        """State once a query (L = 1) has come, for an update that needs what comes with it."""
        return state

    def features(self, call: Call, state: Tree) -> Features:
        """Per-key features for the score, from the state before this query."""
        raise NotImplementedError

    def update(self, call: Call, weights: Bool[Tensor, "..."] | Weights, state: Tree) -> Tree:
        """State after one query (L = 1)."""
        raise NotImplementedError

    def terms(self, call: Call, state: Tree) -> dict[str, Float[Tensor, "B L"]]:
        """Values of one query (L = 1), from the state that the score saw."""
        return {}

    def oracle_advance(self, one: OneQuery, state: OracleState) -> None:
        """`advance` for one query; writes to `state`."""

    def oracle_features(self, one: OneQuery, state: OracleState) -> Float[Tensor, "S F"]:
        """`features` for one query."""
        raise NotImplementedError

    def oracle_update(
        self, one: OneQuery, weights: Float[Tensor, " S"], state: OracleState
    ) -> None:
        """`update` for one query; writes to `state`."""
        raise NotImplementedError


HISTORIES = Axis[type[History]]("history")
