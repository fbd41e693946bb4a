"""A soft read of the keys before the stop of a monotonic walk."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api import registry
from bench.api.call import Call, Dims
from bench.api.config import OfAxis
from bench.api.errors import Refused
from bench.api.one_query import OneQuery
from bench.api.score import SCORES
from bench.api.selector import Selector
from bench.api.shapes import Allowed, Energy, Weights
from bench.api.source import Memory, Source, Tree, branch
from variants.normalizers.masked_softmax import masked_softmax, oracle_softmax
from variants.normalizers.monotonic_walk import MonotonicConfig, MonotonicNormalizer
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class ChunkConfig(MonotonicConfig):
    """Options of monotonic alignments that read softly before the stop."""

    chunk: Annotated[Selector, OfAxis("score")] = Selector("additive")
    """Score of the keys before the stop, against each other; a second one, with its own weights."""


class ChunkNormalizer(MonotonicNormalizer):
    """Reads the key of the stop and `lookback` keys before it, by a softmax over a second score."""

    def __init__(self, config: ChunkConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.chunk = registry.make(SCORES, config.chunk, dims._replace(num_features=0))
        self.own_scores = (self.chunk,)
        if "key_local" not in self.chunk.gives:
            raise Refused(
                f"{config.chunk.name} does not score one key at a time; the score of a chunk "
                "must, because keys after the stop are not read."
            )

    def prepare(self, source: Source) -> Tree:
        """What the second score prepares."""
        return self.chunk.prepare(source)

    def chunk_energy(self, call: Call) -> Energy:
        """Energies of the second score, in float32 at least.

        The score finds its own branch where a score looks for it.
        """
        parts = {self.chunk.branch: branch(call.memory.parts, self.branch)}
        memory = Memory(call.memory.source, parts)
        return at_least_single(self.chunk.energy(replace(call, memory=memory), None))

    def stop_weights(self, call: Call, allowed: Allowed) -> Weights:
        """Softmax over the chunk."""
        return masked_softmax(self.chunk_energy(call), allowed).to(call.query.dtype)

    @abstractmethod
    def spread(self, stops: Weights, allowed: Allowed | None, call: Call) -> Weights:
        """Average of the chunk's softmax over positions of the stop."""

    def oracle_spread(
        self, stops: list[Tensor], allowed: list[bool], one: OneQuery
    ) -> Float[Tensor, " S"]:
        """Stop by stop, a softmax of the keys up to it."""
        energy = self.chunk.oracle(one, None)
        found = torch.zeros_like(energy)
        for k, mass in enumerate(stops):
            first = 0 if self.lookback is None else max(0, k - self.lookback)
            inside = [allowed[s] and first <= s <= k for s in range(len(allowed))]
            found = found + mass * oracle_softmax(energy, inside)
        return found
