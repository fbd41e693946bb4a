"""Readouts: from weights and values to what a query reads."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call, Read
from bench.api.component import Component
from bench.api.one_query import OneQuery
from bench.api.shapes import Allowed, Mixed, Weights


class Readout(Component):
    """weights and values -> what a query reads."""

    branch = "readout"
    reads: ClassVar[tuple[Read, ...]] = ("expected",)
    """Read modes that differ from each other."""

    def read(self, call: Call, weights: Weights, allowed: Allowed | None) -> Mixed:
        """Read the values; zero for a query whose weights are all zero."""
        raise NotImplementedError

    def oracle(
        self, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
    ) -> Float[Tensor, " Ev"]:
        """`read` for one query."""
        raise NotImplementedError


READOUTS = Axis[type[Readout]]("readout")
