"""Questions to a variant, drawn at random, and how they are read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api.call import Read
from bench.api.source import Source, leaf, tree_map
from bench.conformance.place import KEYS, QUERIES, RELATIONS, ROWS, VOCAB, WORD_WIDTH, Placed

WORDS = "word"
"""What words are called among the leaves of a question."""
LENGTHS = (KEYS, 4, 1)
"""Keys of the three rows of a padded batch."""
TRAINED = 0.5
"""Share of training done where a check trains."""
BEGUN = 0.0
"""The same where training has just begun, and no warm-up is over."""


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
    """Modes in which this variant may give different numbers, among some reads or all.

    Those without weights come last: networks are trained and scored so, and other code may run.
    """
    own = [read for read in subject.variant.reads if not reads or read in reads]
    found = [ReadMode(read) for read in own] if subject.weights else []
    without = [ReadMode(read, weights=False) for read in own]
    return [*found, *without] or [ReadMode("expected", weights=False)]


def with_and_without(subject: Placed, read: Read) -> list[ReadMode]:
    """The two modes of one read, whether or not the variant names it."""
    return [ReadMode(read, weights) for weights in (True, False) if subject.weights or not weights]


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
    told_words: bool = False
    """Whether the variant reads the words."""

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
        """Query, key, value, and the inputs that the variant reads, by name."""
        found = {"query": self.query, "key": self.source.key, "value": self.source.value}
        found |= {
            f"{name} of the keys": leaf(self.source.extras, name) for name in self._key_inputs
        }
        found |= {f"{name} of the queries": one for name, one in self.inputs.items()}
        return found | ({WORDS: self.words} if self.told_words else {})

    @property
    def _key_inputs(self) -> tuple[str, ...]:
        return tuple(self.source.extras)

    def fresh(self) -> "Question":
        """A copy whose leaves want gradients."""
        mine = self.each(lambda one: one.detach().clone().requires_grad_())
        return mine if self.told_words else replace(mine, words=self.words)

    def from_leaves(self, leaves: Sequence[Tensor]) -> "Question":
        """The same question of other tensors, in the order of `leaves`."""
        named = dict(zip(self.leaves(), leaves, strict=True))
        extras = {name: named[f"{name} of the keys"] for name in self._key_inputs}
        inputs = {name: named[f"{name} of the queries"] for name in self.inputs}
        source = replace(self.source, key=named["key"], value=named["value"], extras=extras)
        words = named.get(WORDS, self.words)
        return replace(self, query=named["query"], source=source, inputs=inputs, words=words)


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
    larger: float = 1.0,
) -> Question:
    """Draw a question in float64 with the variant's `spread`, `larger` times as wide.

    With `lengths` keys are padded on the right.
    """
    dims = subject.slot.heads.dims
    queries = keys if subject.own else 1 if subject.regime == "pool" else queries
    rng = torch.Generator().manual_seed(seed)
    normal = normal_draws(rng)
    spread = larger * subject.variant.spread
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
    told = (subject.told_relations, subject.told_words)
    return Question(query, source, words, inputs, *told)


def usual_share(read: Read) -> float:
    """Share of training done where a check asks once."""
    return TRAINED if read == "train" else 1.0


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


def one_row(subject: Placed, question: Question, row: int, length: int) -> Question:
    """One example of a batch without its padding."""
    source = cut(question.source, rows=slice(row, row + 1), keys=slice(0, length))
    query = question.query[row : row + 1]
    if subject.own:
        query = query[:, :, :length]
    return question.rows(slice(row, row + 1)).but(query, replace(source, mask=None))
