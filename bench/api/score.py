"""Scores: how well a key answers a query."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call
from bench.api.component import Component
from bench.api.one_query import OneQuery
from bench.api.shapes import Allowed, Energy, Features


class Score(Component):
    """score(query, key) -> energy."""

    branch = "score"
    copies_keys: ClassVar[bool] = False
    """Whether `dot_form` makes keys of its own, which cost one query more than its energies."""
    any_width: ClassVar[bool] = False
    """Whether vectors of any width are compared, by their dot product and the same factor."""

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Energy of every query and key, before masking."""
        raise NotImplementedError

    def scored(self, call: Call) -> Allowed | None:
        """Keys that have an energy at all; None says that every key has one."""
        return None

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float] | None:
        """Query, key and scale whose scaled dot product is the energy, or None.

        It is the whole energy: softmax would cancel a constant of the query, and a sink beside the
        keys, which has an energy of its own, would not.
        """
        return None

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """`energy` for one query, by loops over keys."""
        raise NotImplementedError

    def oracle_scored(self, one: OneQuery) -> list[bool]:
        """`scored` for one query."""
        return [True] * one.num_keys


SCORES = Axis[type[Score]]("score")
