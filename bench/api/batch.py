"""A batch: examples in tensors, and the sizes that a backbone must know of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

NOT_A_WORD = "▣"
"""Stands for a state that belongs to a picture or the like."""


@dataclass(frozen=True)
class Text:
    """One source sequence a row."""

    tokens: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"] | None
    """True where a token is real; None where nothing is padded."""
    segments: Int[Tensor, "B S"] | None = None
    """Number of each token's sentence, where sentences matter; another number begins another."""
    frames: Float[Tensor, "B S F"] | None = None
    """What stands at each place instead of a word: a patch of an image, a window of sound, some
    numbers. `tokens` then only tell how many places there are."""
    grid: tuple[int, int] | None = None
    """Rows and columns where the places are a picture, row by row."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "Text":
        """Apply a function to every tensor."""

        def maybe(x: Tensor | None) -> Tensor | None:
            return None if x is None else function(x)

        return replace(
            self,
            tokens=function(self.tokens),
            mask=maybe(self.mask),
            segments=maybe(self.segments),
            frames=maybe(self.frames),
        )

    def ids(self, row: int) -> list[int]:
        """Tokens of one row without its padding."""
        words = self.tokens[row] if self.mask is None else self.tokens[row][self.mask[row]]
        found: list[int] = words.tolist()
        return found


@dataclass(frozen=True)
class Batch:
    """Examples in tensors; what a backbone reads and an output is scored on."""

    sources: tuple[Text, ...]
    """Sequences to attend to; empty for decoder-only tasks."""
    inputs: Int[Tensor, "B T"]
    """Decoder inputs under teacher forcing; copied words appear as UNK."""
    targets: Int[Tensor, "B T"]
    """What to predict, in the extended vocabulary."""
    mask: Bool[Tensor, "B T"]
    """True where a target is scored."""
    extended: Int[Tensor, "B S"] | None = None
    """The first source in the extended vocabulary, for copying."""
    num_extra: int = 0
    """X, ids beyond the vocabulary that this batch's sources add."""
    gold: Float[Tensor, "B T S"] | None = None
    """Gold alignment, rows sum to one or to zero (no link)."""
    values: Float[Tensor, "B T K"] | None = None
    """Numbers to predict in the place of words, for tasks that regress."""
    frames: Float[Tensor, "B T F"] | None = None
    """What comes beside each decoder input, for tasks without a source: an image, some numbers."""
    references: tuple[str, ...] = ()
    """Target texts, for metrics that score text."""
    names: tuple[str, ...] = ()
    """Source texts, for samples."""
    extra_words: tuple[tuple[str, ...], ...] = ()
    """Words of each row's ids beyond the vocabulary: id V + i is word i of its row."""
    features: Float[Tensor, "B R F"] | None = None
    """What an example has beside its words: R vectors, such as regions of an image."""
    features_gold: Float[Tensor, "B T R"] | None = None
    """Gold alignment with the features; a row of it and the same row of `gold` sum to one together,
    or to zero. A backbone's `arrange` puts it into `gold`, where features are attended to."""
    relations: Int[Tensor, "B T T"] | None = None
    """Label of each pair of decoder inputs, from the row's token to the column's."""
    beside: tuple[int, int] = (0, 0)
    """Columns of `gold` before and behind those of the words; a backbone's `arrange` sets it."""
    stride: int = 1
    """Tokens of the first source for each column of `gold`; a backbone's `arrange` sets it."""
    arranged: bool = False
    """Whether a backbone has put source, gold and extended ids in the order of its states."""

    def folded(self, stride: int) -> "Batch":
        """The same batch for source states that stand for several tokens each.

        A state has the gold of all its tokens, so rows still sum to one; no word has a state of
        its own any more, so there is nothing to copy.
        """
        gold = self.gold
        if gold is not None:
            filled = functional.pad(gold, (0, -gold.shape[2] % stride))
            gold = filled.unflatten(2, (-1, stride)).sum(-1)
        return replace(self, gold=gold, extended=None, stride=self.stride * stride)

    def with_beside(self, before: int, behind: int) -> "Batch":
        """The same batch for sources with states before and behind their words, aligned with none.

        What stands behind follows each row's last word, so that columns of words stay.
        """
        gold = None if self.gold is None else functional.pad(self.gold, (before, behind))
        return replace(self, gold=gold, extended=None, beside=(before, behind))

    def state_mask(self) -> Bool[Tensor, "B S"]:
        """Which states of the first source are real, once the batch has been arranged."""
        text = self.sources[0]
        mask = torch.ones_like(text.tokens, dtype=torch.bool) if text.mask is None else text.mask
        if self.stride == 1 and self.beside == (0, 0):
            return mask
        tokens = mask.sum(1, keepdim=True) + sum(self.beside)
        width = mask.shape[1] + sum(self.beside)
        places = torch.arange(-(-width // self.stride), device=mask.device)
        return places * self.stride < tokens

    def joined(self) -> "Batch":
        """The same batch for sources that are read as one, the others behind the first.

        Gold of the first source stays in its columns; the other columns are aligned with nothing,
        whatever stands there.
        """
        gold = self.gold
        if gold is not None:
            beside = sum(text.tokens.shape[1] for text in self.sources[1:])
            gold = functional.pad(gold, (0, beside))
        return replace(self, gold=gold, extended=None)

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """Apply a function to every tensor; texts stay as they are."""

        def maybe(x: Tensor | None) -> Tensor | None:
            return None if x is None else function(x)

        return replace(
            self,
            sources=tuple(text.map(function) for text in self.sources),
            inputs=function(self.inputs),
            targets=function(self.targets),
            mask=function(self.mask),
            extended=maybe(self.extended),
            gold=maybe(self.gold),
            features=maybe(self.features),
            features_gold=maybe(self.features_gold),
            values=maybe(self.values),
            frames=maybe(self.frames),
            relations=maybe(self.relations),
        )

    def select(self, rows: Int[Tensor, " N"]) -> "Batch":
        """Pick rows, for beams and for losses that want several copies."""
        chosen = rows.tolist()
        return replace(
            self.map(lambda x: x.index_select(0, rows)),
            references=tuple(self.references[row] for row in chosen if self.references),
            names=tuple(self.names[row] for row in chosen if self.names),
            extra_words=tuple(self.extra_words[row] for row in chosen if self.extra_words),
        )

    def first(self, count: int) -> "Batch":
        """The first rows, or all where there are fewer."""
        return self.select(torch.arange(min(count, len(self.targets)), device=self.targets.device))

    def to(self, device: torch.device) -> "Batch":
        """Move every tensor."""
        return self.map(lambda x: x.to(device))


class Sizes(NamedTuple):
    """What a backbone must know of a task to make its layers."""

    source_vocabs: tuple[int, ...]
    """Vocabulary of each source; empty for decoder-only tasks."""
    target_vocab: int
    """V."""
    max_length: int
    """Symbols after which decoding stops, EOS included; some tasks also leave longer sources out of
    scores of attention and delay.

    At most tasks no split holds a longer sequence, source or target. Captions take it from the
    targets of training alone, and a regression from its training points, of which it may ask more.
    """
    bos: int = 1
    eos: int = 2
    unk: int = 3
    source_frames: tuple[int, ...] = ()
    """F of each source that has frames, 0 for one of words; empty where all have words."""
    input_frames: int = 0
    """F of the frames beside decoder inputs; 0 where there are none."""
    features: int = 0
    """F of the features beside the words; 0 where there are none."""
    relations: int = 0
    """Labels that a pair of decoder inputs can have; 0 where pairs have none."""

    def frames_of(self, source: int) -> int:
        """F of one source; 0 where it has words."""
        return self.source_frames[source] if self.source_frames else 0
