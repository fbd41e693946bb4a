"""Normalizers: from energies to weights."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call, Read
from bench.api.component import Component
from bench.api.mask import Windows
from bench.api.one_query import OneQuery, OracleState
from bench.api.score import Score
from bench.api.shapes import Allowed, Energy, Query, Weights
from bench.api.source import Tree


class Normalized:
    """Weights, the state to carry, and terms, as a normalizer returns them."""

    __slots__ = ("state", "terms", "weights")

    def __init__(
        self, weights: Weights, state: Tree | None = None, terms: dict[str, Tensor] | None = None
    ) -> None:
        self.weights = weights
        self.state: Tree = state or {}
        self.terms: dict[str, Tensor] = terms or {}


class Normalizer(Component):
    """energy -> weights; owns its scan over queries if it needs one."""

    branch = "normalizer"
    default_read: Read = "expected"
    """How a trained model reads when it is scored."""
    reads: ClassVar[tuple[Read, ...]] = ("expected",)
    """Read modes that differ from each other."""
    softmax_temperature: float | None = None
    """Set where this is a softmax over the allowed keys and nothing else, which fused code and
    gathered windows may compute instead."""
    has_sink: ClassVar[bool] = False
    """Whether this is a softmax over the allowed keys and a key of its own, which has no value and
    whose energy is `sink_energy`."""
    window_width: int | None = None
    """Keys that a query reads at most; set where `gather` can choose them."""
    visible_alone: bool = False
    """Whether weights of the allowed keys depend on their energies and their places in the sentence
    (`Call.key_position`), neither on hidden keys nor on where in the cache keys stand, so that a
    cache may forget what a window no longer shows."""
    reach: int | None = None
    """Greatest distance at which a key has a weight, so that a cache may forget older keys; None
    where any key may have one."""

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Weights of every key; exactly zero where not allowed and on rows without a key."""
        raise NotImplementedError

    def gather(self, call: Call, allowed: Allowed | None) -> Windows | None:
        """The keys that each query reads by a softmax, where inputs of the keys choose them.

        Asked where `window_width` is set, so that few energies are computed. `normalize` is then
        asked about these keys alone.

        Args:
            call: The queries and all keys.
            allowed: Keys that may be chosen; None for all.

        Returns:
            The keys, alike for all heads or not; None where all are read.
        """
        raise NotImplementedError

    def sink_energy(self, query: Query) -> Float[Tensor, " #Hq"]:
        """Energy of the key that has no value, for each head; asked where `has_sink` is true."""
        raise NotImplementedError

    def oracle(
        self,
        energy: Float[Tensor, " S"],
        allowed: list[bool],
        state: OracleState,
        one: OneQuery,
    ) -> Float[Tensor, " S"]:
        """`normalize` for one query; carries by writing to `state`."""
        raise NotImplementedError

    own_scores: tuple[Score, ...] = ()
    """Further scores that belong to this normalizer, which prepares them."""
    lookback: int | None = 0
    """Keys before the one that stopped a walk that are read with it; None for all of them."""
    stays_at_end: bool = False
    """Whether a walk that runs off the end reads the last key, not nothing."""

    def stop_probability(self, energy: Energy) -> Energy | None:
        """Probability of stopping at a key, for mechanisms that stream; None for others."""
        return None

    def stop_weights(self, call: Call, allowed: Allowed) -> Weights:
        """Weights of a stop and of the keys before it, in a memory that holds nothing else.

        For mechanisms that stream and have a `lookback`; the stop is the last key.
        """
        raise NotImplementedError


NORMALIZERS = Axis[type[Normalizer]]("normalizer")
