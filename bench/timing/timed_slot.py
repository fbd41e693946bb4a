"""A slot in the place of a variant, so that projections, gates and caches are timed with it."""

from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor

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
from bench.api.places import timed_place
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


def build_timed_slot(spec: VariantSpec, shape: AttendShape, impl: Impl) -> TimedSlot:
    """Build the slot of a shape.

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
        given=timed_place(shape.regime) - {"equal_width", "equal_heads"},
    )
    return TimedSlot(build_slot(spec, place, impl=impl), shape)
