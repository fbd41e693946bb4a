"""Pairs of word sequences with one vocabulary for both, whose unknown words can be copied.

Words hold no spaces, so texts are words with a space between them.

What unknown words are is decided by the training part alone. A word of a source that is not in the
vocabulary has an id of its own example, beyond the vocabulary, as in See et al., 2017, "Get to the
point: summarization with pointer-generator networks", https://arxiv.org/abs/1704.04368, section
2.2.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.errors import InvalidConfig
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.samples import every_nth
from tasks.data.words import BOS, EOS, SPECIAL_WORDS, UNK, Vocabulary

EVALUATED_ROWS = 128
Row = TypeVar("Row")


class WordPair(NamedTuple):
    """Source and target words."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    references: tuple[str, ...] = ()
    """Texts that are scored against, where they are not just the target."""


def spread(rows: Sequence[Row], count: int) -> list[Row]:
    """Take so many rows, every n-th from the first one on; all if they are fewer or count is 0.

    What is left behind the last of them is not reached, up to half of the rows. Taking them evenly
    would change the data of published results.

    >>> spread([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 2, 4]
    """
    wanted = count or max(1, len(rows))
    return list(rows[:: max(1, len(rows) // wanted)][:wanted])


class EncodedPair(NamedTuple):
    """A pair as ids, EOS included."""

    source: list[int]
    extended: list[int]
    extra: tuple[str, ...]
    target: list[int]
    pair: WordPair


class WordPairs(Task):
    """Base of tasks from words to words; a subclass calls `settle` once."""

    capabilities = frozenset({"source_tokens"})
    decodes = True
    needs_predictions = False

    def settle(
        self,
        pairs: Mapping[Split, Sequence[WordPair]],
        vocabulary: Vocabulary,
        longest: int = 0,
        *,
        limit: str = "an option",
    ) -> None:
        """Keep the pairs of all parts and set the sizes.

        Args:
            pairs: Of every part; none where they are drawn.
            vocabulary: Counted in the training part.
            longest: Words of the longest source or target, where pairs are drawn.
            limit: Task, option and value by which pairs are left out, for a message.

        Raises:
            InvalidConfig: A part has no pair.
        """
        empty = [part for part, found in pairs.items() if not found]
        if empty:
            raise InvalidConfig(f"{limit} leaves no pair in {', '.join(empty)}; ask for more.")
        self.pairs = pairs
        self.vocabulary = vocabulary
        every = [pair for part in pairs.values() for pair in part]
        lengths = (max(len(pair.source), len(pair.target)) for pair in every)
        longest = max(lengths, default=longest)
        self.sizes = Sizes((len(vocabulary),), len(vocabulary), longest + 1)
        self._encoded = self.encode(pairs.get("train", ()))
        self._evaluation: dict[Split, list[Batch]] = {}

    def held(self, split: Split) -> Sequence[WordPair]:
        """The pairs of a part; a task that draws them does it here."""
        return self.pairs[split]

    def encode(self, pairs: Iterable[WordPair]) -> list[EncodedPair]:
        """Turn words into ids; each source adds its unknown words."""
        found = []
        for pair in pairs:
            ids, extended, extra = self.vocabulary.extend(pair.source)
            target = self.vocabulary.encode_extended(pair.target, extra)
            found.append(
                EncodedPair([*ids, EOS], [*extended, EOS], tuple(extra), [*target, EOS], pair)
            )
        return found

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of batches of similar lengths."""
        lengths = [(len(row.source), len(row.target)) for row in self._encoded]
        while True:
            for chosen in bucketed_batches(lengths, batch_size, generator):
                yield self.batch([self._encoded[index] for index in chosen])

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Rows of about equal length together."""
        if split not in self._evaluation:
            rows = sorted(self.encode(self.held(split)), key=lambda row: len(row.source))
            starts = range(0, len(rows), EVALUATED_ROWS)
            self._evaluation[split] = [
                self.batch(rows[at : at + EVALUATED_ROWS], shown=True) for at in starts
            ]
        return self._evaluation[split]

    def batch(self, rows: Sequence[EncodedPair], *, shown: bool = False) -> Batch:
        """Tensors of some rows, with their texts where they are to be shown."""
        source, real = pad_rows([row.source for row in rows])
        extended, _ = pad_rows([row.extended for row in rows])
        targets, mask = pad_rows([row.target for row in rows])
        seen = torch.where(targets < len(self.vocabulary), targets, UNK)
        found = Batch(
            sources=(Text(source, None if bool(real.all()) else real),),
            inputs=torch.cat((torch.full((len(rows), 1), BOS), seen[:, :-1]), 1),
            targets=targets,
            mask=mask,
            extended=extended,
            num_extra=max((len(row.extra) for row in rows), default=0),
            extra_words=tuple(row.extra for row in rows),
        )
        if not shown:
            return found
        return replace(
            found,
            names=tuple(" ".join(row.pair.source) for row in rows),
            references=tuple(
                "\n".join(row.pair.references or (" ".join(row.pair.target),)) for row in rows
            ),
        )

    def said(self, answers: Sequence[Answer]) -> list[WordPair]:
        """The decoded words of every row as `source`, its first reference as `target`."""
        found = []
        for answer in answers:
            batch = answer.batch
            assert answer.generated is not None, "these tasks decode"
            rows = zip(answer.generated, batch.extra_words, batch.references, strict=True)
            for ids, extra, reference in rows:
                first, *_ = reference.split("\n")
                found.append(WordPair(tuple(self.words(ids, extra)), tuple(first.split())))
        return found

    def sources(self, answers: Sequence[Answer]) -> list[list[str]]:
        """The words of every row's source."""
        return [name.split() for answer in answers for name in answer.batch.names]

    def words(self, ids: Sequence[int], extra: Sequence[str]) -> list[str]:
        """Words of ids, those beyond the vocabulary by the words of their row."""
        known = len(self.vocabulary)
        every = self.vocabulary.words
        return [
            every[n] if n < known else extra[n - known] if n - known < len(extra) else every[UNK]
            for n in ids
        ]

    def knows(self, word: str) -> bool:
        """Whether the vocabulary holds a word."""
        return self.vocabulary.encode([word]) != [UNK]

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Every n-th row, from short sources to long ones."""
        names = [name for answer in answers for name in answer.batch.names]
        rows = [
            Sample(name, " ".join(reference), " ".join(said))
            for name, (said, reference, _) in zip(names, self.said(answers), strict=True)
        ]
        return list(every_nth(rows, count))

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """The words themselves."""
        words = self.vocabulary.words
        return [words[n] if n < len(words) else SPECIAL_WORDS[UNK] for n in ids]

    def show(self, pairs: Sequence[WordPair]) -> Batch:
        """A batch for the report's walk through the weights."""
        return self.batch(self.encode(pairs), shown=True)
