"""How a decoder reads several sources: combiners, shared by recurrent and transformer decoders."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.axes import Axis
from bench.api.batch import Batch
from bench.api.call import Attended, AttendOptions
from bench.api.config import Config
from bench.api.errors import Refused
from bench.api.has_capabilities import HasCapabilities
from bench.api.slot import Slot
from bench.api.source import Memory, State


class CombinerSizes(NamedTuple):
    """Widths a combiner must know."""

    query: int
    """Width of the decoder states that ask."""
    sources: tuple[int, ...]
    """State width of each source."""
    residual: bool = False
    """Whether contexts are added to the states that asked, as in a transformer block: then all of
    them live in one space, and nothing need be projected into it."""


AttachSlot = Callable[[int, int], Slot]
"""(query width, source width) -> slot; what is called for each source that is attended to."""

Answers = tuple[Float[Tensor, "B L Dv"], tuple[Attended, ...]]
"""One context, and what was attended to in each source."""


class States(NamedTuple):
    """One source behind its encoder."""

    found: Float[Tensor, "B S De"]
    mask: Bool[Tensor, "B S"] | None
    """Which states are real; None says that all are."""


@runtime_checkable
class Residual(Protocol):
    """Norm and residual connection around a sublayer of a transformer block."""

    def before(self, x: Tensor) -> Tensor:
        """What the sublayer reads."""
        ...

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        """Join the sublayer's answer with its input."""
        ...


class Combiner(HasCapabilities):
    """How a decoder reads its sources: one slot a source, contexts side by side.

    A subclass may join sources before they are read, or their contexts after; memories, states and
    answers stay one a source.
    """

    slots: tuple[Slot, ...]
    context_width: int

    def __init__(self, config: Config, sizes: CombinerSizes, attach: AttachSlot) -> None:
        super().__init__()
        self.slots = self.make_slots(sizes, attach)
        # a module list registers the parameters; the tuple above keeps the types
        self.slot_list = nn.ModuleList(self.slots)
        self.context_width = sum(slot.output_width for slot in self.slots)

    def make_slots(self, sizes: CombinerSizes, attach: AttachSlot) -> tuple[Slot, ...]:
        """One for each source."""
        return tuple(attach(sizes.query, width) for width in sizes.sources)

    @property
    def num_sublayers(self) -> int:
        """Residual sublayers that it takes in a transformer block."""
        return 1

    def prepare(
        self, sources: tuple[States, ...], tokens: Int[Tensor, "B S"] | None
    ) -> tuple[Memory, ...]:
        """Let every slot prepare its source; ids belong to the first one."""
        ids = (tokens, *[None] * (len(sources) - 1))
        return tuple(
            slot.prepare(states, mask, own)
            for slot, (states, mask), own in zip(self.slots, sources, ids, strict=True)
        )

    def start(
        self, hidden: Float[Tensor, "B D"], memories: tuple[Memory, ...]
    ) -> tuple[State, ...]:
        """Start every slot."""
        like = hidden.unsqueeze(1)
        return tuple(
            slot.start(memory, like) for slot, memory in zip(self.slots, memories, strict=True)
        )

    def arrange(self, batch: Batch) -> Batch:
        """Gold and extended ids of a batch as they line up with the weights."""
        return batch

    def attend(
        self,
        query: Float[Tensor, "B L D"],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        call: AttendOptions,
    ) -> Answers:
        """Ask every slot and join the contexts; `call` are keywords of `Slot.attend`."""
        answers = [
            slot.attend(query, memory, state, **of_source(call, index))
            for index, (slot, memory, state) in enumerate(
                zip(self.slots, memories, states, strict=True)
            )
        ]
        context = self.combine(query, [context for context, _ in answers])
        return context, tuple(attended for _, attended in answers)

    def combine(
        self, query: Float[Tensor, "B L D"], contexts: list[Float[Tensor, "B L _"]]
    ) -> Float[Tensor, "B L Dv"]:
        """One context of those of the sources: side by side unless a subclass does otherwise."""
        return contexts[0] if len(contexts) == 1 else torch.cat(contexts, -1)

    def pass_through(
        self,
        x: Float[Tensor, "B L D"],
        around: Sequence[Residual],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        call: AttendOptions,
    ) -> tuple[Float[Tensor, "B L D"], Answers]:
        """Lead a transformer block's states through `num_sublayers` residual sublayers.

        Returns:
            The states behind the sublayers, and what was read on the way.
        """
        (one,) = around
        context, attended = self.attend(one.before(x), memories, states, call)
        return one.after(x, context), (context, attended)

    def one_width(self, name: str) -> int:
        """Width of the contexts of all sources.

        Raises:
            Refused: They differ, so that they cannot be added or compared.
        """
        widths = [slot.output_width for slot in self.slots]
        if len(set(widths)) > 1:
            shown = " and ".join(map(str, widths))
            raise Refused(
                f"{name} needs contexts of one width, and those of the sources have {shown}; use "
                "combiner=concat or hierarchical."
            )
        return widths[0]


COMBINERS = Axis[type[Combiner]]("combiner")


def of_source(call: AttendOptions, index: int) -> AttendOptions:
    """The same options for one of several sources; sources draw independently of each other."""
    noise = call.get("noise")
    return call if noise is None or index == 0 else {**call, "noise": noise.of_source(index)}
