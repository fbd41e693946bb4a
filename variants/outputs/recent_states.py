"""Recent decoder states and their words, for outputs that copy from them."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.batch import Batch
from bench.api.output import Output, OutputSizes
from bench.api.source import Tree, leaf
from bench.api.trace import Trace


class RecallingOutput(Output):
    """An output that says words again: it reads the inputs of all steps so far, not the last alone.

    In a network these are `inputs` of the batch; whoever has no batch must be asked for them.
    """


class RecentStates(NamedTuple):
    """All states up to the last query, which is the last of them."""

    states: Float[Tensor, "B N D"]
    words: Int[Tensor, "B N"]
    """The word that each state has just read."""

    def allowed(self, queries: int, nearest: int, farthest: int) -> Bool[Tensor, "1 L N"]:
        """States between `nearest` and `farthest` steps behind each of the last queries."""
        at = torch.arange(self.states.shape[1], device=self.states.device)
        behind = at[-queries:, None] - at
        return ((behind >= nearest) & (behind <= farthest)).unsqueeze(0)


def known_words(words: Int[Tensor, "B N"], sizes: OutputSizes) -> Int[Tensor, "B N"]:
    """Ids of the vocabulary: a copied word counts as UNK."""
    return torch.where(words < sizes.vocab, words, sizes.unk)


def recent_states(trace: Trace, batch: Batch, sizes: OutputSizes) -> RecentStates:
    """The states of a whole batch, each with the word that it has read."""
    return RecentStates(trace.states, known_words(batch.inputs, sizes))


def extended(
    trace: Trace, words: Int[Tensor, "B 1"], carried: Tree, window: int
) -> tuple[RecentStates, Tree]:
    """Recent states with one step more, and what to carry of them."""
    states = trace.states
    if carried:
        states = torch.cat((leaf(carried, "states"), states), 1)
        words = torch.cat((leaf(carried, "words"), words), 1)
    return RecentStates(states, words), {"states": states[:, -window:], "words": words[:, -window:]}
