"""The variant: three verbs, of which one answers any number of queries."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.axes import DEFAULTS, Axis
from bench.api.call import Attended, Call, Dims, Edit, MixResult, OracleOptions, QueryShape, Read
from bench.api.errors import Refused
from bench.api.has_capabilities import HasCapabilities
from bench.api.history import History
from bench.api.impl import Impl
from bench.api.inputs import NO_INPUTS, Inputs
from bench.api.noise import Noise
from bench.api.parts import PART, mix_in_parts, part_length
from bench.api.position import Position
from bench.api.shapes import Query, Value, Weights
from bench.api.source import Memory, Source, State, Tree, out_of_rooms, rooms_of
from bench.api.stream import attend_streaming


class Variant(HasCapabilities, ABC):
    """An attention mechanism that replaces the whole chain, or the chain itself.

    An author writes `mix`, and `prepare` and `start` where there is something to keep. Positions
    are counted here and nowhere else, and all state is returned, never kept on `self`.
    """

    remembers_keys: bool = True
    """Whether causal self-attention keeps old keys; recurrent mechanisms do not."""
    counts_places: bool = False
    """Whether a recurrent mechanism answers by how many tokens there were, padding among them, and
    not by the real ones alone: blocks that close, levels of a tree, keys that are counted or turned
    by their places. What the padding holds must not matter there either. Positions of the axis
    `position` that turn queries and keys are not meant; padding takes places there anyway."""
    codes: ClassVar[tuple[Impl, ...]] = ("auto", "eager")
    """Code that there is for it; other code is refused where a variant is built."""
    usual_loss: ClassVar[str] = DEFAULTS["loss"]
    """Losses that train a mechanism where nobody asks for others, joined by '+'. A recipe names
    those of its components."""
    takes_positions: ClassVar[bool] = False
    """Whether a mechanism accepts the axis `position`: positions that turn queries and keys, or are
    added to the input, and others if it says so. A chain accepts all."""
    positions: tuple[Position, ...] = ()
    key_inputs: Inputs = NO_INPUTS
    """Numbers wanted beside every key; see `Component.key_inputs`."""
    query_inputs: Inputs = NO_INPUTS
    default_read: Read = "expected"
    reads: tuple[Read, ...] = ("expected",)
    any_width: bool = False
    """Whether it answers queries, keys and values of any width, so that heads may write keys out in
    another form than the one they are kept in; see `Heads.written`."""
    editable: bool = False
    """Whether `mix` applies `Call.edit` to its weights."""
    time_exponent: float = 2.0
    """Power of the length with which operations grow, queries and keys alike, where no weights are
    wanted; the certificate counts them."""
    memory_exponent: float = 2.0
    """The same for the most bytes that are held at once."""
    exponents_from: int = 0
    """Keys from which on both exponents hold."""
    part_numbers: int = PART
    """Most numbers that are held at once where a call is answered in parts."""
    gather_from: float = 48
    """How many times as long as a window a source is that is read by copies of windows. Shorter
    ones are faster as a mask (one CPU core; the two cross between 40 and 60)."""
    spread: float = 1.0
    """Deviation of queries and keys that the conformance suite draws; less than 1 where attention
    ends at a distance, or else most questions would have no key in reach and show nothing."""

    def __init__(self, dims: Dims, impl: Impl = "auto") -> None:
        super().__init__()
        self.dims = dims
        self.impl: Impl = impl

    def stack_positions(
        self, positions: tuple[Position, ...], histories: tuple[History, ...] = ()
    ) -> None:
        """Take the components of the stacked axes; called once, while the variant is built."""
        self.positions = positions
        # a module list registers the parameters; the tuples keep the types
        self.stacked = nn.ModuleList((*positions, *histories))
        for index, position in enumerate(positions):
            position.branch = f"position{index}"

    @classmethod
    def position_dims(cls, dims: Dims, *, turns: bool) -> Dims:
        """Sizes of the vectors that a position sees.

        Args:
            dims: Of the variant.
            turns: Whether the position turns them; others see all of a vector.

        Raises:
            Refused: The variant has no such vectors.
        """
        width = dims.turned_width if turns else 0
        return dims._replace(query_width=width, key_width=width) if width else dims

    def turn(
        self, x: Float[Tensor, "B H n E"], offset: int, *, keys: bool = False
    ) -> Float[Tensor, "B H n E"]:
        """Queries or keys turned by the places where they stand."""
        turning = [position for position in self.positions if position.turns]
        if not turning:
            return x
        places = torch.arange(offset, offset + x.shape[2], device=x.device)
        kept = x.shape[3] - self.dims.turned_width if self.dims.turned_width else 0
        plain, turned = x[..., :kept], x[..., kept:]
        for position in turning:
            turned = (position.turn_keys if keys else position.turn)(turned, places)
        return torch.cat((plain, turned), -1) if kept else turned

    def receive(self, source: Source, offset: int = 0) -> Memory:
        """Turn keys by the places where they arrive, once and for all, and prepare them.

        What is packed stays packed; `opened` prepares it.
        """
        if source.packing is not None:
            turn = partial(self.turn, offset=offset, keys=True)
            return Memory(source.with_key(source.packing.turned(source.key, turn)))
        turned = self.turn(source.key, offset, keys=True)
        return self.prepare(source if turned is source.key else source.with_key(turned))

    def opened(
        self,
        memory: Memory,
        query: Query,
        written: Callable[[Source, Query], Source] | None,
        *,
        plain: bool,
    ) -> Memory:
        """The memory with keys and values as one call reads them, prepared.

        Args:
            memory: What is kept.
            query: What asks.
            written: Keys and values as these queries want them, where heads say so.
            plain: Whether nothing but the output is wanted.
        """
        source = memory.source.written()
        if written is not None:
            source = written(source, query)
        if source is memory.source:
            return memory
        found = self.prepare(source)
        return replace(found, sinks=memory.sinks, forgotten=memory.forgotten)

    def prepare(self, source: Source) -> Memory:
        """Compute what depends on the source alone; its keys are turned already."""
        return Memory(source)

    def read_below(self, below: Memory) -> Memory:
        """Keys that a layer below keeps, as this one reads them; they are turned already."""
        own = self.prepare(below.source)
        return replace(own, sinks=below.sinks, forgotten=below.forgotten)

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """State before the first query."""
        return State()

    def attend(  # noqa: PLR0913 - how it is asked, by keyword
        self,
        query: Query,
        memory: Memory | None,
        state: State,
        *,
        new: Source | None = None,
        read: Read | None = None,
        noise: Noise | None = None,
        progress: float = 1.0,
        extras: Tree | None = None,
        want_weights: bool = True,
        edit: Edit | None = None,
        values: Value | None = None,
        want_memory: bool = False,
        written: Callable[[Source, Query], Source] | None = None,
    ) -> Attended:
        """Answer some queries: all of them (parallel), one (stepwise), or any split.

        Args:
            query: The next queries of the path.
            memory: The prepared source under cross attention, or what a layer below keeps for this
                one; None under self-attention.
            state: What the previous call returned.
            new: Keys that arrive with the queries, under self-attention.
            read: How to read; None for the mechanism's own way of being scored.
            noise: Needed by `read="train"` where the mechanism samples.
            progress: Share of training done.
            extras: Declared per-query inputs.
            want_weights: Whether the weight matrix is wanted; fused code cannot give it.
            edit: What a probe does to the weights before the values are mixed.
            values: Those of all keys so far, where a layer below keeps them for this one; the cache
                then has keys alone.
            want_memory: Whether a layer above reads what is attended to here.
            written: Keys and values as these queries want them, where that is not how they are
                kept.

        Returns:
            Output, weights (None where the mechanism has none or none were wanted), next state.

        Raises:
            Refused: The weights were to be edited, and this mechanism has none that could be; or it
                was to stream and cannot.
        """
        if edit is not None and (read == "stream" or not self.editable):
            raise Refused("this mechanism has no weights that could be edited.")
        if read == "stream":
            assert memory is not None, "only cross attention streams"
            return attend_streaming(self.stream, query, memory, state)
        state = out_of_rooms(state)
        query = self.turn(query, state.offset)
        memory, cache = self._memory_and_cache(memory, state, new, values)
        plain = not want_weights and edit is None and not want_memory
        memory = self.opened(memory, query, written, plain=plain)
        call = Call(
            query=query,
            memory=memory,
            offset=state.offset,
            causal=self.dims.regime == "causal",
            read=self.default_read if read is None else read,
            noise=noise,
            progress=progress,
            extras=extras or {},
            edit=edit,
            rooms=rooms_of(state),
        )
        output, weights, carried, terms = self._in_parts(call, state.carried, want_weights)
        if weights is not None and memory.forgotten:
            weights = _spread(weights, call)
        if cache is not None and not torch.is_grad_enabled():
            # training drops the state of a whole sequence, and need not copy what it would keep
            cache = self.trim(cache)
        end = state.offset + query.shape[2]
        after = replace(state, offset=end, carried=carried, cache=cache, rooms=call.rooms)
        seen = memory if want_memory else None
        return Attended(output, weights if want_weights else None, after, terms, seen)

    def _memory_and_cache(
        self, memory: Memory | None, state: State, new: Source | None, values: Value | None
    ) -> tuple[Memory, Memory | None]:
        """What the queries read, and the cache once the keys have come that come with them."""
        cache = state.cache
        if new is not None:
            memory = self.receive(new, state.offset)
            if self.dims.regime == "causal" and self.remembers_keys:
                kept = memory if values is None else memory.without_values()
                cache = kept if cache is None else self.remember(cache, kept)
                memory = cache if values is None else cache.with_values(values)
        assert memory is not None, "cross attention needs a memory, self-attention needs `new`"
        return memory, cache

    def row_sums(self) -> Float[Tensor, " Hq"] | None:
        """What each row of weights sums to, by head, for weights of either sign; None for anything.

        Weights that are never negative declare their sums by capabilities.
        """
        return None

    def remember(self, cache: Memory, new: Memory) -> Memory:
        """The cache with keys that have just come; what no later query sees may be forgotten."""
        return cache.extend(new)

    def trim(self, cache: Memory) -> Memory:
        """The cache without what no later query sees."""
        return cache

    def _in_parts(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """`mix`, in parts where the queries are many and independent of each other."""
        plain = self.impl == "auto" and not want_weights and call.edit is None
        if not (plain and self.rows_alone()):
            return self.mix(call, carried, want_weights)
        rows, heads, _, _ = call.query.shape
        of_one = rows * heads * max(1, call.memory.num_keys)
        answer = partial(self.mix, want_weights=False)
        size = part_length(call, of_one, self.part_numbers)
        return mix_in_parts(call, carried, size, answer, past_alone=self.remembers_keys)

    @property
    def adds_to_energies(self) -> bool:
        """Whether positions add to energies; fused code then holds a number for each pair."""
        return any(position.changes_energy for position in self.positions)

    def rows_alone(self) -> bool:
        """Whether long calls are answered in parts.

        True where the answer to a query does not depend on other queries, and needs a number for
        each key.
        """
        return False

    @abstractmethod
    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Mix the values for every query of the call."""

    def stream(
        self, query: Float[Tensor, "B Hq 1 Eq"], memory: Memory, pointer: Int[Tensor, "B Hq"]
    ) -> tuple[Float[Tensor, "B Hq 1 Ev"], Int[Tensor, "B Hq"], Int[Tensor, "B Hq"]]:
        """Hard decoding that reads keys from the pointer on; returns output, pointer, keys read.

        The pointer is the first key not yet passed; S where the search ran off the end.
        """
        raise Refused(f"{type(self).__name__} has no streaming form.")

    def embed(self, x: Float[Tensor, "B L D"], offset: int) -> Float[Tensor, "B L D"]:
        """Add the positions that act before projection."""
        for position in self.positions:
            x = position.embed(x, offset)
        return x

    def give_up_input(self) -> None:
        """Free what `embed` alone reads, in a layer of a stack whose input gets no positions."""
        for position in self.positions:
            position.give_up_input()

    def answer_by_loops(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"] | None]:
        """`oracle` of queries and keys that are turned by loops first; what `attend` must equal."""
        return self.oracle(*self.turn_by_loops(query, source), read, **call)

    def turn_by_loops(
        self, query: Float[Tensor, "Hq L Eq"], source: Source
    ) -> tuple[Float[Tensor, "Hq L Eq"], Source]:
        """`turn` of one example, vector by vector."""
        kept = query.shape[2] - self.dims.turned_width if self.dims.turned_width else 0
        for position in (one for one in self.positions if one.turns):
            query = _each(query, kept, position.oracle_turn)
            key = _each(source.key[0], kept, position.oracle_turn_key)
            source = replace(source, key=key.unsqueeze(0))
        return query, source

    @abstractmethod
    def oracle(
        self,
        query: Float[Tensor, "Hq L Eq"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "Hq L Ev"], Float[Tensor, "Hq L S"] | None]:
        """Plain loops over one unpadded example, a source of one row, after `turn`."""


def _spread(weights: Weights, call: Call) -> Weights:
    """Weights of all keys of the path, zero for those that were forgotten."""
    keys = weights.shape[3] + call.memory.forgotten
    found = weights.new_zeros(*weights.shape[:3], keys)
    return found.index_copy(3, call.key_position, weights)


def _each(
    x: Float[Tensor, "H n E"], kept: int, turn: Callable[[Tensor, int], Tensor]
) -> Float[Tensor, "H n E"]:
    """Every vector turned by its place, but for the numbers in front that stay."""
    rows = [
        torch.stack([torch.cat((v[:kept], turn(v[kept:], place))) for place, v in enumerate(head)])
        for head in x
    ]
    return torch.stack(rows)


MECHANISMS = Axis[type[Variant]]("mechanism")
