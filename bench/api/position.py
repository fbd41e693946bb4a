"""Positions: what attention knows of where queries and keys stand."""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call
from bench.api.component import Component
from bench.api.one_query import OneQuery
from bench.api.shapes import Features, Mixed, Weights

Content = Literal["queries", "keys"]
"""What the energies of a position may read beside places, labels and gates."""


class Position(Component):
    """How positions turn queries and keys, or what they add to energies and outputs.

    Several may be stacked.
    """

    branch = "position0"
    turns: bool = False
    """Whether queries and keys are turned by their places (rotary positions)."""
    changes_energy: bool = False
    energy_reads: frozenset[Content] = frozenset()
    """What its energies read; empty where they go by places, labels and gates alone."""
    multiplies_pairs: bool = False
    """Whether its energies take products for each pair although they read neither queries nor
    keys, so that the formula of a score is not what a call costs."""
    changes_output: bool = False
    by_place: bool = False
    """Whether what it adds goes by `Call.key_position`, so that a cache may forget keys between
    those that are left."""
    gives_features: bool = False
    num_features: int = 0
    """Per-key features handed to the score; set where `gives_features`."""

    def embed(self, x: Float[Tensor, "B L D"], offset: int) -> Float[Tensor, "B L D"]:
        """Add positions to the input of the stack, before any projection."""
        return x

    @classmethod
    def is_added(cls) -> bool:
        """Whether it adds to the input of a stack, which attention by itself does not have."""
        return cls.embed is not Position.embed

    def give_up_input(self) -> None:
        """Free what `embed` alone reads, in a layer whose input gets no positions."""

    def turn(
        self, x: Float[Tensor, "B H n E"], places: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n E"]:
        """Turn queries, or keys as they arrive, by the places where they stand.

        A key is turned once: the cache holds turned keys.
        """
        raise NotImplementedError

    def turn_keys(
        self, x: Float[Tensor, "B H n E"], places: Int[Tensor, " n"]
    ) -> Float[Tensor, "B H n E"]:
        """`turn` for keys, where it is not the same."""
        return self.turn(x, places)

    def energy(self, call: Call) -> Float[Tensor, "#B Hq L S"]:
        """Add to the energy."""
        raise NotImplementedError

    def output(self, call: Call, weights: Weights) -> Mixed:
        """Add to the output."""
        raise NotImplementedError

    def features(self, call: Call) -> Features:
        """Per-key features for scores that take them."""
        raise NotImplementedError

    def oracle_embed(self, x: Float[Tensor, " D"], place: int) -> Float[Tensor, " D"]:
        """`embed` for one token."""
        return x

    def oracle_turn(self, x: Float[Tensor, " E"], place: int) -> Float[Tensor, " E"]:
        """`turn` for one vector."""
        raise NotImplementedError

    def oracle_turn_key(self, x: Float[Tensor, " E"], place: int) -> Float[Tensor, " E"]:
        """`turn_keys` for one vector."""
        return self.oracle_turn(x, place)

    def oracle_energy(self, one: OneQuery) -> Float[Tensor, " S"]:
        """`energy` for one query."""
        raise NotImplementedError

    def oracle_output(self, one: OneQuery, weights: Float[Tensor, " S"]) -> Float[Tensor, " Ev"]:
        """`output` for one query."""
        raise NotImplementedError

    def oracle_features(self, one: OneQuery) -> Float[Tensor, "S F"]:
        """`features` for one query."""
        raise NotImplementedError


POSITIONS = Axis[type[Position]]("position")
