"""Questions to a variant, drawn at random, and its answers however the queries are split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api.call import Attended, QueryShape, Read
from bench.api.noise import Noise
from bench.api.source import Memory, Source, State, tree_map
from bench.conformance.place import KEYS, QUERIES, ROWS, VOCAB, WORD_WIDTH, Placed

LENGTHS = (KEYS, 4, 1)
"""Keys of the three rows of a padded batch."""
TRAINED = 0.5
"""Share of training done where a check trains."""


class ReadMode(NamedTuple):
    """How to read, and whether weights are wanted (without them, fused code may run)."""

    read: Read
    weights: bool = True

    def __str__(self) -> str:
        return f"read={self.read}" + ("" if self.weights else " without weights")


EVERY_READ: tuple[Read, ...] = ("train", "expected", "hard")
DRAWN: tuple[Read, ...] = ("train", "sample")
"""Reads that need noise, which is addressed by the row."""


def modes(subject: Placed, *reads: Read) -> list[ReadMode]:
    """Modes in which this variant may give different numbers, among some reads or all."""
    own = [read for read in subject.variant.reads if not reads or read in reads]
    found = [ReadMode(read) for read in own] if subject.weights else []
    return [*found, ReadMode("expected", weights=False)]


def every_mode(subject: Placed) -> list[ReadMode]:
    """All modes, whether or not they differ."""
    reads = dict.fromkeys((*EVERY_READ, *subject.variant.reads))
    wanted = (True, False) if subject.weights else (False,)
    return [ReadMode(read, weights) for read in reads for weights in wanted]


@dataclass(frozen=True)
class Question:
    """Queries and a source of one batch."""

    query: Tensor
    source: Source
    words: Tensor
    """Embedded words that come with the queries."""

    def rows(self, index: Tensor | slice) -> "Question":
        """Some rows, or the rows in another order."""
        return Question(self.query[index], cut(self.source, rows=index), self.words[index])

    def to(self, dtype: torch.dtype) -> "Question":
        """The same question in another precision."""
        source = replace(
            self.source, key=self.source.key.to(dtype), value=self.source.value.to(dtype)
        )
        return Question(self.query.to(dtype), source, self.words.to(dtype))

    def but(self, query: Tensor, source: Source) -> "Question":
        """The same words beside another query and source."""
        return Question(query, source, self.words[:, : query.shape[2]])

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value."""
        return self.query, self.source.key, self.source.value

    def fresh(self) -> "Question":
        """A copy whose query, key and value want gradients."""
        query, key, value = (leaf.detach().clone().requires_grad_() for leaf in self.leaves())
        return self.but(query, replace(self.source, key=key, value=value))


def ask(
    subject: Placed,
    *,
    seed: int = 0,
    rows: int = ROWS,
    queries: int = QUERIES,
    keys: int = KEYS,
    lengths: Sequence[int] | None = None,
) -> Question:
    """Draw a question in float64 with the variant's `spread`; `lengths` pads on the right."""
    dims = subject.slot.heads.dims
    queries = keys if subject.own else 1 if subject.regime == "pool" else queries
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    spread = subject.variant.spread
    query = spread * normal(rows, dims.heads, queries, dims.query_width)
    key = spread * normal(rows, dims.kv_heads, keys, dims.key_width)
    value = normal(rows, dims.kv_heads, keys, dims.value_width)
    tokens = torch.randint(1, VOCAB, (rows, keys), generator=rng)
    mask = None if lengths is None else padding(lengths, keys)
    return Question(query, Source(key, value, mask, tokens), normal(rows, queries, WORD_WIDTH))


def padding(lengths: Sequence[int], keys: int) -> Tensor:
    """Mask of a batch padded on the right."""
    return torch.arange(keys) < torch.tensor(lengths)[:, None]


def cut(source: Source, *, rows: Tensor | slice = slice(None), keys: slice = slice(None)) -> Source:
    """Some rows and some keys of a source."""
    return Source(
        key=source.key[rows][:, :, keys],
        value=source.value[rows][:, :, keys],
        mask=None if source.mask is None else source.mask[rows][:, keys],
        tokens=None if source.tokens is None else source.tokens[rows][:, keys],
        extras=tree_map(lambda leaf: leaf[rows][:, :, keys], source.extras),
    )


class Walkthrough:
    """One walk along the queries: memory, state, and what came out so far."""

    def __init__(self, subject: Placed, question: Question, mode: ReadMode, seed: int = 1) -> None:
        self.subject = subject
        self.question = question
        self.mode = mode
        self.noise = Noise(seed) if mode.read in DRAWN else None
        query = question.query
        causal = subject.regime == "causal"
        self.memory: Memory | None = None if causal else subject.variant.prepare(question.source)
        like = QueryShape(query.shape[0], query.shape[1], query.shape[3], query.dtype, query.device)
        self.state: State = subject.variant.start(self.memory, like)
        self.found: list[Attended] = []
        self.at = 0

    def step(self, count: int) -> Attended:
        """Answer the next queries."""
        chunk = slice(self.at, self.at + count)
        new = None
        if self.subject.regime == "causal":
            new = cut(self.question.source, keys=chunk)
        found = self.subject.variant.attend(
            self.question.query[:, :, chunk],
            self.memory,
            self.state,
            new=new,
            read=self.mode.read,
            noise=self.noise,
            progress=TRAINED if self.mode.read == "train" else 1.0,
            extras={"word": self.question.words[:, chunk]},
            want_weights=self.mode.weights,
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

    def joined(self) -> Attended:
        """All answers as if they were one."""
        keys = self.question.source.key.shape[2]
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
) -> Attended:
    """Walk along all queries; None for `split` asks them all at once."""
    path = Walkthrough(subject, question, mode, seed)
    for count in split or (question.query.shape[2],):
        path.step(count)
    return path.joined()
