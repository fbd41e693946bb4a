"""The one argument of every component hook, and what attention returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypedDict, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.errors import UnknownName
from bench.api.noise import Noise
from bench.api.room import Rooms, joined
from bench.api.shapes import Allowed, Mixed, Query, Value, Weights
from bench.api.source import Memory, Source, State, Tree, tree_map

Read = Literal["train", "expected", "hard", "sample", "stream"]
"""`train` samples where the mechanism samples, `expected` averages, `hard` takes the best key.

`sample` draws as a trained model would; mechanisms that cannot are read as expected. `stream` is
`hard` key by key: nothing beyond the last key that is needed is read, and there are no weights.
"""

Regime = Literal["cross", "causal", "self", "pool"]
"""`causal` and `self` attend to their own sequence; `pool` has one query."""

REGIMES: tuple[Regime, ...] = get_args(Regime)


def regime_of(slot: str) -> Regime:
    """The regime of a slot, whose name it is.

    Raises:
        UnknownName: No backbone has such a slot.
    """
    for known in REGIMES:
        if slot == known:
            return known
    raise UnknownName.among("slot", slot, REGIMES)


class Dims(NamedTuple):
    """Sizes a component needs to make its parameters."""

    heads: int
    """Hq."""
    kv_heads: int
    """Hk; divides `heads`."""
    query_width: int
    """Eq, per head."""
    key_width: int
    """Ek, per head."""
    value_width: int
    """Ev, per head."""
    model_width: int
    """D, the width of the residual stream or decoder state."""
    regime: Regime
    source_vocab: int = 0
    """Ids a source token can take; 0 where there are no tokens."""
    num_features: int = 0
    """F, per-key features that history and position components hand to the score."""
    word_width: int = 0
    """Width of the embedded word that comes with a query; 0 where none does."""
    layer: int = 0
    """Index of the layer in its stack, 0-based."""
    value_heads: int = 0
    """Heads of the values, which divide `heads`; 0 where there are as many as key heads."""
    turned_width: int = 0
    """Numbers at the end of each query and key that positions turn; 0 for all of them."""
    relations: int = 0
    """Labels that a pair of query and key can have; 0 where pairs have none."""

    @property
    def num_value_heads(self) -> int:
        """Hv, written out."""
        return self.value_heads or self.kv_heads


class Link(NamedTuple):
    """What a layer reads of a layer below that holds the same attention."""

    layer: int
    """Whose keys and values are read, 0-based."""
    kept: Literal["nothing", "values", "all"]
    """What the layer below keeps for this one, too: `nothing` where only keys that have just come
    are read, the values, or `all`, so that this layer has no cache."""


class QueryShape(NamedTuple):
    """What `start` must know of the queries to come."""

    rows: int
    heads: int
    width: int
    dtype: torch.dtype
    device: torch.device


Edit = Callable[[Weights, "Call"], Weights]
"""What a probe does to the weights before they are used: erase, permute, replace."""


class OracleOptions(TypedDict, total=False):
    """What else an oracle is told; see `bench.api.oracle.chain_oracle`."""

    row: int
    noise: Noise | None
    progress: float
    extras: Mapping[str, Tensor] | None
    terms: dict[str, Tensor] | None
    """Filled with the terms by name, a number for each query; None where nobody wants them."""


class AttendOptions(TypedDict, total=False):
    """How a slot is asked; see the fields of `Call`."""

    read: Read | None
    """None lets the mechanism read as it is scored."""
    noise: Noise | None
    progress: float
    want_weights: bool
    extras: Tree | None
    edit: Edit | None
    values: Value | None
    """Values of all keys so far, where a layer below keeps them for this one."""
    want_memory: bool
    """Whether a layer above reads what is attended to here."""
    written: Callable[[Source, Query], Source] | None
    """Keys and values as the queries want them; see `Heads.written`."""


@dataclass
class Call:
    """One question to a component: these queries against this memory."""

    query: Query
    memory: Memory
    offset: int
    """Position of the first query."""
    causal: bool
    read: Read = "expected"
    noise: Noise | None = None
    progress: float = 1.0
    """Share of training done; 1 in evaluation."""
    extras: Tree = field(default_factory=dict)
    """Declared per-query inputs, leaves `B L ...`; `word` is the embedded word that the decoder
    reads at a step, the one it said before; `relation` (`B L N`) is the label of each pair of a
    query and a token of its sequence, those that have not come yet included. Those of
    `query_inputs` are `B L Hq w`."""
    edit: Edit | None = None
    """Intervention on the weights; None but in analyses."""
    chosen_by: Tree = field(default_factory=dict)
    """What the mask carries, if anything, once the keys of this call have come."""
    rooms: Rooms | None = None
    """Where what is carried for each key is written; see `join`."""

    @property
    def position(self) -> Int[Tensor, " L"]:
        """Absolute positions of the queries, 0-based."""
        length = self.query.shape[2]
        return torch.arange(self.offset, self.offset + length, device=self.query.device)

    @property
    def key_position(self) -> Int[Tensor, " S"]:
        """Absolute positions of the keys, 0-based; those that were forgotten are left out."""
        found = torch.arange(self.memory.num_keys, device=self.query.device)
        if not self.memory.forgotten:
            return found
        return torch.where(found < self.memory.sinks, found, found + self.memory.forgotten)

    @property
    def allowed(self) -> Bool[Tensor, "#B 1 #L S"] | None:
        """Keys that exist and do not lie in the future; None says that all do.

        Under causality every access compares the places of all queries and keys.
        """
        mask = self.memory.source.mask
        allowed = None if mask is None else mask[:, None, None, :]
        if self.causal and not self._after_all_keys:
            past = (self.key_position <= self.position[:, None])[None, None]
            allowed = past if allowed is None else allowed & past
        return allowed

    def within(self, seen: Allowed) -> Allowed:
        """Those of some keys that exist and do not lie in the future."""
        allowed = self.allowed
        return seen if allowed is None else seen & allowed

    @property
    def written_allowed(self) -> Bool[Tensor, "#B 1 #L S"]:
        """`allowed`, written out where all keys are."""
        allowed = self.allowed
        return self.memory.source.key_mask()[:, None, None] if allowed is None else allowed

    @property
    def _after_all_keys(self) -> bool:
        """Whether this is a single query with no key behind it, as in a step of decoding."""
        keys = self.memory.num_keys + self.memory.forgotten
        return self.query.shape[2] == 1 and keys <= self.offset + 1

    @property
    def drawing(self) -> Noise:
        """The noise, where a mechanism is asked to sample."""
        assert self.noise is not None, "reading by draws needs noise"
        return self.noise

    def join(self, before: Mapping[str, Tensor], more: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What is carried for all keys, written in place where that is possible.

        Args:
            before: What is carried, `B S` or `B H S ...`; no query changes it later.
            more: The same for keys that have come.
        """
        return joined(before, more) if self.rooms is None else self.rooms.join(before, more)

    def part(self, start: int, query: Query) -> "Call":
        """The call for some neighboring queries of this one.

        Args:
            start: Index of the first.
            query: The queries.
        """

        def cut(found: Tensor) -> Tensor:
            return found[:, start : start + query.shape[2]]

        extras = tree_map(cut, self.extras)
        return replace(self, query=query, offset=self.offset + start, extras=extras)


class MixResult(NamedTuple):
    """What `mix` returns."""

    output: Mixed
    weights: Weights | None
    carried: Tree
    terms: dict[str, Float[Tensor, "B L"]]


class Attended(NamedTuple):
    """The answer to some queries."""

    output: Mixed
    weights: Weights | None
    state: State
    terms: dict[str, Float[Tensor, "B L"]]
    """Values of each query (`log_prob`, `entropy`, `touched`, `expected_delay`); never losses."""
    memory: Memory | None = None
    """What was attended to, before anything of it is forgotten; None unless it was wanted."""
