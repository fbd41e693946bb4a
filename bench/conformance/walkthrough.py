"""A walk along the queries of a question, however they are split, and the answers on the way."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.api.call import Attended, Edit, QueryShape
from bench.api.noise import Noise
from bench.api.source import Memory, Source, State
from bench.api.variant import Variant
from bench.conformance.place import Placed
from bench.conformance.question import DRAWN, Question, ReadMode, cut, usual_share


class LayerBelow:
    """A layer that holds the same attention and hands on what it attends to."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.cache: Memory | None = None
        self.at = 0

    def hand_on(self, new: Source) -> Memory:
        """What it attends to once more keys have come."""
        memory = self.variant.receive(new, self.at)
        self.at += new.key.shape[2]
        if not self.variant.remembers_keys:
            return memory
        cache = memory if self.cache is None else self.variant.remember(self.cache, memory)
        self.cache = cache if torch.is_grad_enabled() else self.variant.trim(cache)
        return cache

    def select(self, rows: Tensor) -> None:
        """Put the rows into another order."""
        self.cache = None if self.cache is None else self.cache.select(rows)


class Walkthrough:
    """One walk along the queries: memory, state, and what came out so far."""

    def __init__(
        self,
        subject: Placed,
        question: Question,
        mode: ReadMode,
        seed: int = 1,
        progress: float | None = None,
    ) -> None:
        """Begin in front of the first query.

        Args:
            subject: Who is asked.
            question: What is asked.
            mode: How it is read.
            seed: Of the noise.
            progress: Share of training done; None for the usual one of the read.
        """
        self.subject = subject
        self.question = question
        self.mode = mode
        self.noise = Noise(seed) if mode.read in DRAWN else None
        self.progress = usual_share(mode.read) if progress is None else progress
        query = question.query
        causal = subject.regime == "causal"
        self.memory: Memory | None = None if causal else subject.variant.receive(question.source)
        like = QueryShape(query.shape[0], query.shape[1], query.shape[3], query.dtype, query.device)
        self.state: State = subject.variant.start(self.memory, like)
        self.below = None if subject.slot.link is None else LayerBelow(subject.variant)
        self.found: list[Attended] = []
        self.at = 0
        self.edit: Edit | None = None
        """What a probe does to the weights."""

    def step(self, count: int) -> Attended:
        """Answer the next queries."""
        chunk = slice(self.at, self.at + count)
        slot, memory = self.subject.slot, self.memory
        new, values = None, None
        if self.subject.regime == "causal":
            new = cut(self.question.source, keys=chunk)
        if new is not None and self.below is not None:
            under = self.below.hand_on(new)
            if slot.keeps_nothing:
                memory, new = slot.variant.read_below(under), None
            elif slot.keeps_keys_alone:
                values = under.source.value
        found = self.subject.variant.attend(
            self.question.query[:, :, chunk],
            memory,
            self.state,
            new=new,
            values=values,
            read=self.mode.read,
            noise=self.noise,
            progress=self.progress,
            extras=self.question.extras(chunk),
            want_weights=self.mode.weights,
            edit=self.edit,
        )
        self.state = found.state
        self.at += count
        self.found.append(found)
        return found

    def reorder(self, order: Tensor) -> None:
        """Put the rows into another order, as beam search does between two steps."""
        self.question = self.question.rows(order)
        self.memory = None if self.memory is None else self.memory.select(order)
        self.state = self.state.select(order)
        if self.below is not None:
            self.below.select(order)

    def continue_from(self, other: "Walkthrough") -> None:
        """Go on from where another walk is."""
        self.state, self.at = other.state, other.at
        if self.below is not None and other.below is not None:
            self.below.cache, self.below.at = other.below.cache, other.below.at

    def joined(self) -> Attended:
        """All answers as if they were one."""
        keys = self.question.source.num_keys
        weights = None
        parts = [found.weights for found in self.found if found.weights is not None]
        if parts:
            wide = [torch.nn.functional.pad(p, (0, keys - p.shape[3])) for p in parts]
            weights = torch.cat(wide, 2)
        output = torch.cat([found.output for found in self.found], 2)
        names = self.found[0].terms
        terms = {name: torch.cat([f.terms[name] for f in self.found], 1) for name in names}
        return Attended(output, weights, self.state, terms)


def answer(
    subject: Placed,
    question: Question,
    mode: ReadMode,
    *,
    split: Sequence[int] | None = None,
    seed: int = 1,
    progress: float | None = None,
) -> Attended:
    """Walk along all queries; None for `split` asks them all at once."""
    path = Walkthrough(subject, question, mode, seed, progress)
    for count in split or (question.query.shape[2],):
        path.step(count)
    return path.joined()
