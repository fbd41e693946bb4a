"""Questions to a variant, drawn at random, and its answers however the queries are split."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api.call import Attended, QueryShape, Read
from bench.api.noise import Noise
from bench.api.source import Memory, Source, State, leaf, tree_map
from bench.api.variant import Variant
from bench.conformance.place import (
    KEYS,
    QUERIES,
    RELATIONS,
    ROWS,
    VOCAB,
    WORD_WIDTH,
    Placed,
)

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
    inputs: dict[str, Tensor] = field(default_factory=dict)
    """What the variant wants beside every query, `B L Hq w`; what it wants beside every key stands
    in the source."""
    told_relations: bool = False
    """Whether pairs of a query and a key have labels."""

    def extras(self, queries: slice = slice(None)) -> dict[str, Tensor]:
        """Declared inputs of some queries."""
        found = {name: one[:, queries] for name, one in self.inputs.items()}
        tokens = self.source.tokens
        if self.told_relations and tokens is not None:
            place = torch.arange(self.words.shape[1], device=tokens.device)[queries]
            found["relation"] = labels(place, tokens)
        return {"word": self.words[:, queries], **found}

    def each(self, change: Callable[[Tensor], Tensor]) -> "Question":
        """Every tensor of numbers changed alike."""
        source = replace(
            self.source,
            key=change(self.source.key),
            value=change(self.source.value),
            extras=tree_map(change, self.source.extras),
        )
        inputs = {name: change(one) for name, one in self.inputs.items()}
        return replace(
            self, query=change(self.query), source=source, words=change(self.words), inputs=inputs
        )

    def rows(self, index: Tensor | slice) -> "Question":
        """Some rows, or the rows in another order."""
        inputs = {name: one[index] for name, one in self.inputs.items()}
        words = self.words[index]
        source = cut(self.source, rows=index)
        return replace(self, query=self.query[index], source=source, words=words, inputs=inputs)

    def to(self, dtype: torch.dtype) -> "Question":
        """The same question in another precision."""
        return self.each(lambda leaf: leaf.to(dtype))

    def but(self, query: Tensor, source: Source) -> "Question":
        """The same words and inputs beside another query and source."""
        length = query.shape[2]
        inputs = {name: one[:, :length] for name, one in self.inputs.items()}
        words = self.words[:, :length]
        return replace(self, query=query, source=source, words=words, inputs=inputs)

    def leaves(self) -> dict[str, Tensor]:
        """Query, key, value, and the inputs that the variant wants, by name."""
        found = {"query": self.query, "key": self.source.key, "value": self.source.value}
        found |= {
            f"{name} of the keys": leaf(self.source.extras, name) for name in self._key_inputs
        }
        return found | {f"{name} of the queries": one for name, one in self.inputs.items()}

    @property
    def _key_inputs(self) -> tuple[str, ...]:
        return tuple(self.source.extras)

    def fresh(self) -> "Question":
        """A copy whose leaves want gradients."""
        mine = self.each(lambda one: one.detach().clone().requires_grad_())
        return replace(mine, words=self.words)

    def from_leaves(self, leaves: Sequence[Tensor]) -> "Question":
        """The same question of other tensors, in the order of `leaves`."""
        named = dict(zip(self.leaves(), leaves, strict=True))
        extras = {name: named[f"{name} of the keys"] for name in self._key_inputs}
        inputs = {name: named[f"{name} of the queries"] for name in self.inputs}
        source = replace(self.source, key=named["key"], value=named["value"], extras=extras)
        return replace(self, query=named["query"], source=source, inputs=inputs)


def normal_draws(rng: torch.Generator) -> Callable[..., Tensor]:
    """A function that draws a tensor of the shape it is given, in float64."""
    return partial(torch.randn, generator=rng, dtype=torch.float64)


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
    normal = normal_draws(rng)
    spread = subject.variant.spread
    query = spread * normal(rows, dims.heads, queries, dims.query_width)
    key = spread * normal(rows, dims.kv_heads, keys, dims.key_width)
    value = normal(rows, dims.num_value_heads, keys, dims.value_width)
    tokens = torch.randint(1, VOCAB, (rows, keys), generator=rng)
    mask = None if lengths is None else padding(lengths, keys)
    words = normal(rows, queries, WORD_WIDTH)
    variant = subject.variant
    extras = {
        name: normal(rows, one.num_heads(dims.kv_heads), keys, one.width)
        for name, one in variant.key_inputs.items()
    }
    inputs = {
        name: normal(rows, queries, one.num_heads(dims.heads), one.width)
        for name, one in variant.query_inputs.items()
    }
    source = Source(key, value, mask, tokens, extras)
    return Question(query, source, words, inputs, subject.told_relations)


def extras(subject: Placed, words: Tensor, tokens: Tensor | None, at: int = 0) -> dict[str, Tensor]:
    """What comes with some queries: a word each, and labels of pairs where they are needed.

    Args:
        subject: Who is asked.
        words: Embedded words of these queries.
        tokens: Of all keys; the label of a pair depends on the key's token, so that it stays what
            it is when rows, keys or queries are cut, padded or put into another order.
        at: Place of the first query.
    """
    found = {"word": words}
    if subject.told_relations and tokens is not None:
        place = torch.arange(at, at + words.shape[1], device=tokens.device)
        found["relation"] = labels(place, tokens)
    return found


def labels(place: Tensor, tokens: Tensor) -> Tensor:
    """Labels of pairs of queries at some places and keys with these tokens."""
    return (3 * place[:, None] + tokens[:, None]) % RELATIONS


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

    def __init__(self, subject: Placed, question: Question, mode: ReadMode, seed: int = 1) -> None:
        self.subject = subject
        self.question = question
        self.mode = mode
        self.noise = Noise(seed) if mode.read in DRAWN else None
        query = question.query
        causal = subject.regime == "causal"
        self.memory: Memory | None = None if causal else subject.variant.receive(question.source)
        like = QueryShape(query.shape[0], query.shape[1], query.shape[3], query.dtype, query.device)
        self.state: State = subject.variant.start(self.memory, like)
        self.below = None if subject.slot.link is None else LayerBelow(subject.variant)
        self.found: list[Attended] = []
        self.at = 0

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
            progress=TRAINED if self.mode.read == "train" else 1.0,
            extras=self.question.extras(chunk),
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
        if self.below is not None:
            self.below.select(order)

    def continue_from(self, other: "Walkthrough") -> None:
        """Go on from where another walk is."""
        self.state, self.at = other.state, other.at
        if self.below is not None and other.below is not None:
            self.below.cache, self.below.at = other.below.cache, other.below.at

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
