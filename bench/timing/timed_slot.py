"""A slot in the place of a variant, so that projections, gates and caches are timed with it.

Heads that read layers below them are timed as a stack. One layer of it alone is either the first,
which is multi-head attention, or one that has nothing to read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.build import SlotPlace, build_slot
from bench.api.call import (
    Attended,
    AttendOptions,
    Call,
    Dims,
    MixResult,
    OracleOptions,
    QueryShape,
    Read,
)
from bench.api.impl import Impl
from bench.api.places import timed_layers, timed_place
from bench.api.resolve import VariantSpec
from bench.api.shapes import Query
from bench.api.slot import Slot
from bench.api.source import Memory, Source, State, Tree
from bench.api.variant import Variant
from bench.timing.shape import SOURCE_VOCAB, AttendShape


class TimedSlot(Variant):
    """Answers hidden vectors, which come as the queries of a single head as wide as the model."""

    def __init__(self, slot: Slot, shape: AttendShape) -> None:
        width = shape.heads * shape.width
        super().__init__(Dims(1, 1, width, width, width, width, shape.regime))
        self.slot = slot
        inner = slot.variant
        self.default_read, self.reads = inner.default_read, inner.reads
        self.time_exponent, self.memory_exponent = inner.time_exponent, inner.memory_exponent
        self.exponents_from = inner.exponents_from

    def receive(self, source: Source, offset: int = 0) -> Memory:
        """Project the states that are attended to."""
        return self.slot.prepare(source.key[:, 0], source.mask, source.tokens)

    def start(self, memory: Memory | None, like: QueryShape) -> State:
        """What the slot remembers before the first vector."""
        x = torch.empty(like.rows, 0, like.width, dtype=like.dtype, device=like.device)
        return self.slot.start(memory, x)

    def attend(
        self,
        query: Query,
        memory: Memory | None,
        state: State,
        *,
        new: Source | None = None,
        **call: Unpack[AttendOptions],
    ) -> Attended:
        """Project, attend, join the heads; the output is that of a single head."""
        x = query[:, 0]
        own = None if new is None else (x, new.mask, new.tokens)
        output, attended = self.slot.attend(x, memory, state, own=own, **call)
        # torch 2.11 cannot compile `_replace` of what is returned
        return Attended(output.unsqueeze(1), *attended[1:])

    def mix(self, call: Call, carried: Tree, want_weights: bool) -> MixResult:
        """Never asked: `attend` is the slot's."""
        raise NotImplementedError

    def oracle(
        self,
        query: Float[Tensor, "1 L D"],
        source: Source,
        read: Read,
        **call: Unpack[OracleOptions],
    ) -> tuple[Float[Tensor, "1 L D"], None]:
        """Never asked: a slot is certified through its heads."""
        raise NotImplementedError


@dataclass(frozen=True)
class StackState(State):
    """What all layers of a stack remember."""

    layers: tuple[State, ...] = ()


class TimedStack(TimedSlot):
    """Slots of which each answers the one below, and reads its keys where its heads say so.

    Sublayers between them are left out, for only attention is timed.
    """

    def __init__(self, slots: Sequence[Slot], shape: AttendShape) -> None:
        super().__init__(slots[-1], shape)
        self.slots = tuple(slots)
        self.below = nn.ModuleList(slots[:-1])  # so that torch knows their parameters
        links = (slot.link for slot in slots)
        self.read_above = {link.layer for link in links if link is not None}

    def start(self, memory: Memory | None, like: QueryShape) -> StackState:
        """What each layer remembers before the first vector."""
        x = torch.empty(like.rows, 0, like.width, dtype=like.dtype, device=like.device)
        return StackState(layers=tuple(slot.start(memory, x) for slot in self.slots))

    def attend(
        self,
        query: Query,
        memory: Memory | None,
        state: State,
        *,
        new: Source | None = None,
        **call: Unpack[AttendOptions],
    ) -> Attended:
        """Answer with every layer in turn; weights are those of the last one."""
        assert isinstance(state, StackState), "a stack goes on from its own state"
        assert new is not None, "such heads stand under causal self-attention alone"
        x = query[:, 0]
        handed: dict[int, Memory | None] = {}
        after: list[State] = []
        for index, slot in enumerate(self.slots):
            options: AttendOptions = {**call, "want_memory": index in self.read_above}
            options["want_weights"] = slot is self.slot and call.get("want_weights", False)
            own = (x, new.mask, new.tokens)
            below = None if slot.link is None else handed[slot.link.layer]
            x, attended = slot.attend(
                x, memory, state.layers[index], own=own, below=below, **options
            )
            handed[index] = attended.memory
            after.append(attended.state)
        return Attended(x.unsqueeze(1), attended.weights, StackState(layers=tuple(after)), {})


def layers_of(state: State) -> tuple[State, ...]:
    """What each layer of a timed place remembers; there is one layer but in a stack."""
    return state.layers if isinstance(state, StackState) else (state,)


def build_timed_slot(spec: VariantSpec, shape: AttendShape, impl: Impl) -> TimedSlot:
    """Build the slot of a shape, or the stack that its heads need.

    Raises:
        Refused: The variant cannot stand there.
    """
    width = shape.heads * shape.width
    place = SlotPlace(
        regime=shape.regime,
        query_width=width,
        source_width=width,
        head=f"multi[heads={shape.heads}]",
        source_vocab=SOURCE_VOCAB,
        word_width=width,
        given=timed_place(shape.regime, with_heads=True) - {"equal_width", "equal_heads"},
    )
    layers = timed_layers(spec)
    if layers == 1:
        return TimedSlot(build_slot(spec, place, impl=impl), shape)
    places = [replace(place, layer=n, below=tuple(range(n))) for n in range(layers)]
    return TimedStack([build_slot(spec, one, impl=impl) for one in places], shape)
