"""Components of attention, one class an axis; every hook has a plain-loop twin.

The twin (`oracle...`) answers one query of one head of one unpadded example with Python loops. It
is what the vectorized hook is tested against in float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.axes import Axis
from bench.api.call import Call, Dims, Link, QueryShape, Read
from bench.api.capabilities import Capability, check_capabilities
from bench.api.config import Config
from bench.api.errors import Refused
from bench.api.inputs import Inputs
from bench.api.noise import Noise
from bench.api.shapes import Allowed, Energy, Features, Mixed, Query, Weights
from bench.api.source import Memory, Source, Tree
from bench.api.start import Starting

NOTHING: frozenset[Capability] = frozenset()
NO_INPUTS: Inputs = MappingProxyType({})

Content = Literal["queries", "keys"]
"""What the energies of a position may read beside places, labels and gates."""

OracleState = dict[str, Any]
"""What an oracle carries from query to query: tensors, numbers or lists, as its component likes."""


@dataclass
class OneQuery:
    """What an oracle sees: one query, one head, one example without padding."""

    query: Float[Tensor, " Eq"]
    key: Float[Tensor, "S Ek"]
    value: Float[Tensor, "S Ev"]
    head: int
    position: int
    """Of the query, 0-based."""
    causal: bool
    read: Read
    tokens: list[int] | None = None
    row: int = 0
    """Index in the batch, which addresses the noise."""
    noise: Noise | None = None
    progress: float = 1.0
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    """Declared inputs of this query, by name; those of `query_inputs` are of its head."""
    key_extras: Mapping[str, Float[Tensor, "S w"]] = field(default_factory=dict)
    """Declared inputs of the keys of its head, by name."""
    said: dict[str, Tensor] = field(default_factory=dict)
    """What oracles write down for terms, by name; see `Component.oracle_terms`."""

    @property
    def num_keys(self) -> int:
        """S, all of them real."""
        return self.key.shape[0]

    def visible(self, index: int) -> bool:
        """Whether causality lets the query see this key."""
        return not self.causal or index <= self.position


class Component(Starting):
    """One choice on one axis of attention.

    A subclass is final and registered with `register`; it writes only its own branch of the
    memory and of the state.
    """

    needs: ClassVar[frozenset[Capability]] = NOTHING
    gives: ClassVar[frozenset[Capability]] = NOTHING
    removes: ClassVar[frozenset[Capability]] = NOTHING
    """What another part gives and this one makes untrue."""
    unsupported: ClassVar[Mapping[Capability, str]] = {}
    time_exponent: float = 2.0
    """Power of the length with which its operations grow, where that is more than a number for each
    pair of query and key; the chain knows by itself where less is done."""
    memory_exponent: float = 2.0
    """The same for the most bytes that are held at once."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_capabilities(cls.__name__, cls.needs, cls.gives, cls.removes, cls.unsupported)

    branch: str = ""
    """Name of this component's branch of memory and state; the chain numbers stacked ones."""
    key_inputs: Inputs = NO_INPUTS
    """Numbers wanted beside every key, by name, projected by the slot (gates, rates, decays).

    A hook finds them as `leaf(call.memory.source.extras, name)`, `B Hk S w`; `B 1 S w` where all
    heads share them."""
    query_inputs: Inputs = NO_INPUTS
    """The same beside every query: `leaf(call.extras, name)`, `B L Hq w`."""

    def __init__(self, config: Config, dims: Dims) -> None:
        super().__init__()

    def prepare(self, source: Source) -> Tree:
        """Compute what depends on the source alone, once a source.

        A hook finds it again as `leaf(call.memory.parts, self.branch, name)`.
        """
        return {}

    def start(self, memory: Memory | None, like: QueryShape) -> Tree:
        """State before the first query; empty where nothing is carried."""
        return {}

    def oracle_terms(self, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, ""]]:
        """Terms of one query, from what the oracles wrote down for each head of it."""
        return {}


class Score(Component):
    """score(query, key) -> energy."""

    branch = "score"
    takes_features: ClassVar[bool] = False

    def energy(self, call: Call, features: Features | None) -> Energy:
        """Energy of every query and key, before masking."""
        raise NotImplementedError

    def scored(self, call: Call) -> Allowed | None:
        """Keys that have an energy at all; None says that every key has one."""
        return None

    def dot_form(self, call: Call) -> tuple[Tensor, Tensor, float] | None:
        """Query, key and scale whose scaled dot product is the energy, or None.

        A constant of each query may be left out, for softmax cancels it.
        """
        return None

    def oracle(self, one: OneQuery, features: Float[Tensor, "S F"] | None) -> Float[Tensor, " S"]:
        """`energy` for one query, by loops over keys."""
        raise NotImplementedError

    def oracle_scored(self, one: OneQuery) -> list[bool]:
        """`scored` for one query."""
        return [True] * one.num_keys


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
    changes_output: bool = False
    gives_features: bool = False
    num_features: int = 0
    """Per-key features handed to the score; set where `gives_features`."""

    def embed(self, x: Float[Tensor, "B L D"], offset: int) -> Float[Tensor, "B L D"]:
        """Add positions to the input of the stack, before any projection."""
        return x

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


class Windows(NamedTuple):
    """A window of keys for every query, listed one by one."""

    keys: Int[Tensor, "B Hq L W"]
    """Places of the keys; where a window reaches out of the source, any real place."""
    allowed: Bool[Tensor, "B Hq L W"]
    """Whether the query may see them."""
    log_post_weight: Float[Tensor, "B Hq L W"] | None = None
    """Logarithm of a post-softmax weight applied after normalizer."""


class Mask(Component):
    """Which keys a query may see."""

    branch = "mask"
    kind: ClassVar[Literal["full", "window", "dense"]] = "dense"
    """Symbolic form, so that a fused kernel need not read a mask."""
    window_width: int | None = None
    """Keys in the largest window; set where `gather` can list them."""
    recent: int | None = None
    """Under causality, the last keys that a query sees, its own among them, so that a cache may
    forget older ones; None where it may see all. A mask that sets it goes by `key_position`."""
    sinks: int = 0
    """First keys that every query sees though they are old; used where `recent` is set."""

    def window(self, call: Call) -> tuple[Allowed | None, Float[Tensor, "B Hq L S"] | None]:
        """Allowed keys (None for all), and the log of a post-softmax weight, if any."""
        raise NotImplementedError

    def gather(self, call: Call) -> Windows:
        """`window` as a list of keys for every query, so that long sources cost linear time."""
        raise NotImplementedError

    def oracle(self, one: OneQuery) -> tuple[list[bool], list[float] | Float[Tensor, " S"]]:
        """Allowed keys of one query, and their post-softmax weights (not logarithms)."""
        raise NotImplementedError


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

    def normalize(
        self, energy: Energy, allowed: Allowed | None, state: Tree, call: Call
    ) -> Normalized:
        """Weights of every key; exactly zero where not allowed and on rows without a key."""
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


class Heads(Starting):
    """Owns every projection of a slot: model width to heads and back."""

    needs: ClassVar[frozenset[Capability]] = NOTHING
    gives: ClassVar[frozenset[Capability]] = NOTHING
    removes: ClassVar[frozenset[Capability]] = NOTHING
    unsupported: ClassVar[Mapping[Capability, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_capabilities(cls.__name__, cls.needs, cls.gives, cls.removes, cls.unsupported)

    dims: Dims
    output_width: int

    def __init__(
        self,
        config: Config,
        query_width: int,
        source_width: int,
        regime: Literal["cross", "causal", "self", "pool"],
    ) -> None:
        super().__init__()

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B Hq L Eq"]:
        """Make the queries."""
        raise NotImplementedError

    def source(
        self, x: Float[Tensor, "B S Dk"], mask: Tensor | None, tokens: Tensor | None
    ) -> Source:
        """Make keys and values."""
        raise NotImplementedError

    def start(self, like: QueryShape) -> Tree:
        """What is remembered before the first state of a sequence; empty for most."""
        return {}

    def own(
        self,
        x: Float[Tensor, "B L D"],
        mask: Tensor | None,
        tokens: Tensor | None,
        past: Tree,
    ) -> tuple[Query, Source, Tree]:
        """Queries and keys of one sequence, and what must be remembered of it.

        Heads whose projections see earlier states (short convolutions) replace this; others make
        queries and keys of each state by itself.

        Args:
            x: The next states of the sequence.
            mask: Which of them are real.
            tokens: Their ids.
            past: What the previous call returned.
        """
        return self.query(x), self.source(x, mask, tokens), past

    def link(self, below: tuple[int, ...]) -> Link | None:
        """What these heads read of a layer below; None for nothing.

        Called once, by a slot that is built. Heads that read another layer leave out here the maps
        that they do not need.

        Args:
            below: Layers below that hold the same attention and hand on their keys and values.
        """
        return None

    def own_above(
        self,
        x: Float[Tensor, "B L D"],
        mask: Tensor | None,
        tokens: Tensor | None,
        past: Tree,
        below: Source,
    ) -> tuple[Query, Source, Tree]:
        """`own` where a layer below is read, unless it keeps everything for this one.

        Args:
            x: The next states of the sequence.
            mask: Which of them are real.
            tokens: Their ids.
            past: What the previous call returned.
            below: Keys and values of the same places in the layer below; keys are turned already.
        """
        raise NotImplementedError

    def gate(
        self, output: Float[Tensor, "B Hq L Ev"], x: Float[Tensor, "B L D"]
    ) -> Float[Tensor, "B Hq L Ev"]:
        """Norms and gates of each head, before the heads are joined; `x` is what asked."""
        return output

    def refuse_gates(self) -> None:
        """Refuse heads whose output is no linear map of what they read.

        Raises:
            Refused: There are norms or gates behind the reading.
        """
        if type(self).gate is not Heads.gate:
            raise Refused("these heads have gates or norms, so single values add no fixed share.")

    def merge(self, output: Float[Tensor, "B Hq L Ev"]) -> Float[Tensor, "B L D"]:
        """Join the heads."""
        raise NotImplementedError

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "Hq Eq"]:
        """`query` for one query, head by head."""
        raise NotImplementedError

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "Hk Ek"], Float[Tensor, "Hv Ev"]]:
        """Key and value of one state, head by head."""
        raise NotImplementedError

    def oracle_own(
        self, x: Float[Tensor, "L D"]
    ) -> tuple[Float[Tensor, "Hq L Eq"], Float[Tensor, "Hk L Ek"], Float[Tensor, "Hv L Ev"]]:
        """`own` for one whole sequence: queries, keys and values."""
        query = torch.stack([self.oracle_query(state) for state in x], 1)
        made = [self.oracle_source(state) for state in x]
        key, value = (torch.stack([pair[i] for pair in made], 1) for i in range(2))
        return query, key, value

    def oracle_above(
        self, x: Float[Tensor, "L D"], below: Source
    ) -> tuple[Float[Tensor, "Hq L Eq"], Float[Tensor, "Hk L Ek"], Float[Tensor, "Hv L Ev"]]:
        """Queries, keys and values of one whole sequence above a layer that is read.

        Args:
            x: Its states.
            below: Keys and values of the layer below, one row; keys are not turned yet.
        """
        raise NotImplementedError

    def oracle_gate(
        self, output: Float[Tensor, "Hq Ev"], x: Float[Tensor, " D"]
    ) -> Float[Tensor, "Hq Ev"]:
        """`gate` for one query."""
        return output

    def oracle_merge(self, output: Float[Tensor, "Hq Ev"]) -> Float[Tensor, " Dv"]:
        """`merge` for one query, by loops over heads."""
        raise NotImplementedError


def expand_heads(x: Float[Tensor, "B Hk S E"], heads: int) -> Float[Tensor, "B Hq S E"]:
    """Repeat key heads so that every query head has one (grouped queries)."""
    if x.shape[1] == heads:
        return x
    if x.shape[1] == 1:  # a view, which fused code reads without a copy
        return x.expand(-1, heads, -1, -1)
    return torch.repeat_interleave(x, heads // x.shape[1], 1)


SCORES = Axis[type[Score]]("score")
POSITIONS = Axis[type[Position]]("position")
MASKS = Axis[type[Mask]]("mask")
NORMALIZERS = Axis[type[Normalizer]]("normalizer")
READOUTS = Axis[type[Readout]]("readout")
HISTORIES = Axis[type[History]]("history")
HEADS = Axis[type[Heads]]("head")
