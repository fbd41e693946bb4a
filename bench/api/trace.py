"""A forward pass: how it reads, and what it leaves for outputs and losses to see."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.call import Attended, AttendOptions, Edit, Read
from bench.api.errors import Refused
from bench.api.noise import Noise
from bench.api.source import Memory

Terms = Mapping[str, Float[Tensor, "B S"]]
"""Values of each source token, by name; like those of attention they are never losses."""

Emit = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(states, context, embedded) -> logits over the vocabulary; broadcasts over extra dimensions, so
that p(y | s) is `emit(states[:, :, None], value[:, None], embedded[:, :, None])`."""


@dataclass(frozen=True)
class Mode:
    """How a forward pass reads; the same for every slot of a network."""

    read: Read | None = None
    """None lets each mechanism read as it is scored."""
    noise: Noise | None = None
    progress: float = 1.0
    want_weights: bool = True
    edit: Edit | None = None
    relations: Int[Tensor, "B L N"] | None = None
    """Label of each pair of tokens, where slots are told."""

    def layer(self, index: int) -> "Mode":
        """The same for one layer of a stack; layers draw independently of each other."""
        if self.noise is None or index == 0:
            return self
        return replace(self, noise=self.noise.of_layer(index))

    def source(self, index: int) -> "Mode":
        """The same for one of several sources; they draw independently of each other."""
        if self.noise is None or index == 0:
            return self
        return replace(self, noise=self.noise.of_source(index))

    def backwards(self) -> "Mode":
        """The same for the other direction of a pair, which draws for itself."""
        return self if self.noise is None else replace(self, noise=self.noise.backwards())

    def call(self) -> AttendOptions:
        """Keywords for `Slot.attend`."""
        call: AttendOptions = {
            "read": self.read,
            "noise": self.noise,
            "progress": self.progress,
            "want_weights": self.want_weights,
            "edit": self.edit,
        }
        if self.relations is not None:
            call["extras"] = {"relation": self.relations}
        return call


class Trace(NamedTuple):
    """All that outputs and losses may see of a decoder's run."""

    states: Float[Tensor, "B T D"]
    context: Float[Tensor, "B T Dv"]
    embedded: Float[Tensor, "B T De"]
    attended: tuple[Attended, ...]
    """One a slot that holds the variant, the last layer of a stack first; empty without one."""
    memories: tuple[Memory | None, ...]
    source_terms: tuple[Terms, ...] = ()
    """What the encoder of each source says of its tokens, where it has something to say."""

    @property
    def weights(self) -> Float[Tensor, "B T S"]:
        """Weights of the first slot, averaged over heads."""
        found = self.attended[0].weights
        if found is None:
            raise Refused(
                "this output or loss needs weights, and the variant has none; choose a variant "
                "that gives weights."
            )
        return found[:, 0] if found.shape[1] == 1 else found.mean(1)

    @property
    def read_share(self) -> Float[Tensor, "B T"] | None:
        """Share of the source that was read before each answer, in the slot that read most.

        None where no slot says how far it has read, as under soft attention.
        """
        # an output may have a memory where nothing attends
        asked = zip(self.attended, self.memories, strict=False)
        shares = [
            attended.terms["touched"] / memory.source.length.clamp(min=1).unsqueeze(1)
            for attended, memory in asked
            if memory is not None and "touched" in attended.terms
        ]
        return torch.stack(shares).amax(0) if shares else None
