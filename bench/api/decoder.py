"""Recurrent decoders: when attention is queried, and where its context goes."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.axes import Axis
from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.capabilities import Capability
from bench.api.combiner import COMBINERS, AttachSlot, Combiner, CombinerSizes, States
from bench.api.config import Config
from bench.api.encoder import Encoded
from bench.api.has_capabilities import HasCapabilities
from bench.api.registry import make
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.source import Memory, State, Tree, tree_map
from bench.api.trace import Mode


class DecoderState(NamedTuple):
    """A decoder's position on its way: hidden state, slot states, and what a decoder adds."""

    hidden: Float[Tensor, "B D"]
    slots: tuple[State, ...]
    extra: Tree

    def select(self, rows: Int[Tensor, " N"]) -> "DecoderState":
        """Pick batch rows, for beams."""
        slots = tuple(state.select(rows) for state in self.slots)
        extra = tree_map(lambda leaf: leaf.index_select(0, rows), self.extra)
        return DecoderState(self.hidden.index_select(0, rows), slots, extra)


class Steps(NamedTuple):
    """Some decoder steps."""

    states: Float[Tensor, "B T D"]
    context: Float[Tensor, "B T Dv"]
    attended: tuple[Attended, ...]
    path: DecoderState


class DecoderSizes(NamedTuple):
    """Widths a decoder must know."""

    embedding: int
    hidden: int
    summary: int
    sources: tuple[int, ...]
    """State width of each encoder."""
    combiner: Selector = Selector("concat")
    """How several sources are read."""
    backward: tuple[int, ...] = ()
    """Units of the summary that came from reading backwards."""


class Decoder(HasCapabilities):
    """Where attention stands in a recurrent decoder; a combiner holds its slots."""

    attends: ClassVar[bool] = True
    context_width: int
    output_layer_width: int
    sampling: float = 0.0
    """Share of training inputs that the backbone draws from its own last prediction."""

    def __init__(self, config: Config, sizes: DecoderSizes, attach: AttachSlot) -> None:
        super().__init__()
        self.combiner: Combiner | None = None
        self.context_width = 0
        if self.attends:
            read = CombinerSizes(sizes.hidden, sizes.sources)
            self.combiner = make(COMBINERS, sizes.combiner, read, attach)
            self.context_width = self.combiner.context_width

    @classmethod
    def given(cls, config: Any) -> frozenset[Capability]:
        """Capabilities that this decoder gives under these options: `open_loop` or nothing."""
        return cls.gives

    def prepare(self, sources: tuple[Encoded, ...], batch: Batch) -> tuple[Memory, ...]:
        """Let every slot prepare its source."""
        if self.combiner is None:
            return ()
        read = tuple(States(source.states, source.mask) for source in sources)
        return self.combiner.prepare(read, batch.extended)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What holds the variant; nothing without attention."""
        return () if self.combiner is None else self.combiner.slots

    @abstractmethod
    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> DecoderState:
        """The state before the first word."""
        raise NotImplementedError

    @abstractmethod
    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """One step: its state, its context, the weights, and the next path."""
        raise NotImplementedError

    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """All steps under teacher forcing; a loop unless a subclass can do better."""
        found: list[Steps] = []
        # one split has one backward; a slice a step would write the whole gradient T times
        for word in x.split(1, 1):
            found.append(self.step(word, memories, path, mode))
            path = found[-1].path
        return join_steps(found)

    def attend(
        self,
        query: Float[Tensor, "B L D"],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        mode: Mode,
        word: Float[Tensor, "B L De"] | None = None,
    ) -> tuple[Float[Tensor, "B L Dv"], tuple[Attended, ...]]:
        """Read every source into one context.

        `word` is what the decoder reads at these steps; a decoder that hands it on gives the
        capability `token_extras`.
        """
        assert self.combiner is not None, "a decoder that asks has slots"
        call = mode.call()
        if word is not None:
            call["extras"] = {"word": word}
        return self.combiner.attend(query, memories, states, call)

    def start_slots(
        self, hidden: Float[Tensor, "B D"], memories: tuple[Memory, ...]
    ) -> tuple[State, ...]:
        """Start every slot."""
        assert self.combiner is not None, "a decoder that asks has slots"
        return self.combiner.start(hidden, memories)

    @abstractmethod
    def output_layer(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """What the vocabulary projection reads; broadcasts over extra dimensions."""
        raise NotImplementedError


def join_steps(found: list[Steps]) -> Steps:
    """Concatenate steps along the target."""
    joined = []
    for slot in range(len(found[0].attended)):
        parts = [steps.attended[slot] for steps in found]
        weights = None
        if parts[0].weights is not None:
            weights = torch.cat([part.weights for part in parts if part.weights is not None], 2)
        terms = {name: torch.cat([p.terms[name] for p in parts], 1) for name in parts[0].terms}
        output = torch.cat([part.output for part in parts], 2)
        joined.append(Attended(output, weights, parts[-1].state, terms))
    states = torch.cat([steps.states for steps in found], 1)
    context = torch.cat([steps.context for steps in found], 1)
    return Steps(states, context, tuple(joined), found[-1].path)


DECODERS = Axis[type[Decoder]]("decoder")
