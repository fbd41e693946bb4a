"""Decoders whose states do not depend on what is attended to."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from bench.api.decoder import Decoder, DecoderState, Steps
from bench.api.source import Memory
from bench.api.trace import Mode


class OpenLoopDecoder(Decoder):
    """One word or all words are one computation; a subclass writes `run`."""

    gives = frozenset({"open_loop"})
    attends = False

    def step(
        self,
        x: Float[Tensor, "B 1 De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """One word."""
        return self.run(x, memories, path, mode)

    @abstractmethod
    def run(
        self,
        x: Float[Tensor, "B T De"],
        memories: tuple[Memory, ...],
        path: DecoderState,
        mode: Mode,
    ) -> Steps:
        """All words at once."""
