"""Texts with labels that are read from data: cleaning, vocabulary, cache."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bench.api.answer import Answer
from bench.api.batch import Batch, Sizes, Text
from bench.api.config import Config, FloatRange, IntRange, Legal
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.task import Split
from tasks.classification.bags_of_words import accuracy_baselines
from tasks.classification.labeled_texts import (
    PARTS,
    Labeled,
    Parts,
    TextTask,
    evaluation_batches,
    label_batch,
)
from tasks.data.bucketing import bucketed_batches
from tasks.data.corpus import parts_note
from tasks.data.derived import Arrays, kept_arrays, pack, unpack
from tasks.data.tables import DataSet
from tasks.data.words import SPECIAL_WORDS, UNK, Vocabulary
from tasks.metrics.labels import label_scores


def without_repeats(
    train: Iterable[tuple[str, int]], held: Iterable[tuple[str, int]]
) -> list[tuple[str, int]]:
    """Training texts without those that are also in the other parts, and each of them once.

    >>> without_repeats([("a b", 1), ("A  b", 0), ("c", 0), ("d", 1)], [("C", 1)])
    [('a b', 1), ('d', 1)]
    """
    seen = {_plain(text) for text, _ in held}
    kept = []
    for text, label in train:
        if _plain(text) not in seen:
            seen.add(_plain(text))
            kept.append((text, label))
    return kept


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def hide_words(batch: Batch, share: float, generator: torch.Generator) -> Batch:
    """Turn a share of the words of a training batch into UNK, so that UNK is trained."""
    if not share:
        return batch

    def hidden(tokens: Tensor) -> Tensor:
        return tokens.masked_fill(torch.rand(tokens.shape, generator=generator) < share, UNK)

    (text,) = batch.sources
    whole = Text(hidden(text.tokens), text.mask, text.segments)
    return Batch(sources=(whole,), inputs=batch.inputs, targets=batch.targets, mask=batch.mask)


class ReadRows(TextTask):
    """Sequences that were read, in fixed parts, with a vocabulary of the training part."""

    vocabulary: Vocabulary
    parts: Parts
    hidden: float = 0.0
    """Share of the words of each training batch that are turned into UNK."""

    def words(self, ids: Sequence[int]) -> list[str]:
        """Words of the vocabulary."""
        return self.vocabulary.decode(ids)

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches."""
        rows = self.parts["train"]
        lengths = [len(row.ids) for row in rows]
        while True:
            for chosen in bucketed_batches(lengths, batch_size, generator):
                batch = label_batch([rows[index] for index in chosen], self.labels)
                yield hide_words(batch, self.hidden, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """All texts of the part, short ones first."""
        return evaluation_batches(self.parts[split], self.labels)


@dataclass(frozen=True, kw_only=True)
class ReadTextConfig(Config):
    """Options of texts that are read."""

    named: ClassVar[str]
    """The task, for sentences about its options."""
    vocab: Annotated[int, IntRange(500, 50000, log=True)] = 8000
    """Words at most, the most frequent ones of the training part."""
    least: Annotated[int, Legal(1)] = 2
    """Occurrences in the training part that a word needs."""
    hidden: Annotated[float, FloatRange(0.0, 0.5)] = 0.1
    """Share of the words of each training batch that are hidden as unknown."""
    train: int = 0
    """Training texts to use, the first ones; 0 for all."""
    validate: int = 500
    """Texts of validation, the first ones; 0 for all."""
    test: int = 0
    """Texts of the test, the first ones; 0 for all."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.vocab <= len(SPECIAL_WORDS):
            raise InvalidConfig(
                f"{self.named}: vocab must be above {len(SPECIAL_WORDS)}, got {self.vocab}."
            )
        for name in ("train", "validate", "test"):
            if getattr(self, name) < 0:
                found = getattr(self, name)
                raise InvalidConfig(
                    f"{self.named}: {name} must be >= 0, and 0 is all; got {found}."
                )
        if not 0 <= self.hidden < 1:
            raise InvalidConfig(f"{self.named}: hidden must be in [0, 1), got {self.hidden}.")


Cut = Callable[[str], list[list[str]]]
"""A text as sentences of words."""


class ReadTextTask(ReadRows):
    """Texts of a table with a label each."""

    config: ReadTextConfig
    own: ClassVar[tuple[tuple[str, int], ...]] = ()
    """Texts written by us and their labels, which may be shown."""
    cut: Cut

    def take(self, table: DataSet, cut: Cut, kept_under: Mapping[str, object]) -> None:
        """Encode a data set, or find it encoded in the cache.

        Args:
            table: With the fields `text` and `label`, and the parts of a split.
            cut: Makes sentences of a text; one sentence where they do not matter.
            kept_under: Name and options of `cut`.
        """
        config, self.cut, self.hidden = self.config, cut, self.config.hidden
        counts = {"train": config.train, "validation": config.validate, "test": config.test}
        rows = {part: [(row["text"], row["label"]) for row in table.parts[part]] for part in counts}
        held = rows["validation"] + rows["test"]
        rows["train"] = without_repeats(rows["train"], held)
        dropped = len(table.parts["train"]) - len(rows["train"])
        for part, count in counts.items():
            self.note_fewer(part, count, len(rows[part]))
        rows = {part: rows[part][: count or None] for part, count in counts.items()}
        # the labels do not go through the cache, so its ids must be those of these very texts
        depends = {**kept_under, "options": asdict(config), "texts": _digest(rows), "revision": 2}
        arrays = kept_arrays("texts", depends, lambda: _encoded(rows, cut, config), given=(cut,))
        self.vocabulary = Vocabulary(arrays["words"].tobytes().decode().split("\n"))
        self.parts = {part: _decoded(rows[part], arrays, part) for part in PARTS}
        longest = max(len(row.ids) for part in PARTS for row in self.parts[part])
        self.sizes = Sizes((len(self.vocabulary),), len(self.labels), longest)
        self.notes["data"] = table.note
        self.notes["parts"] = parts_note(rows)
        self.notes["repeats"] = (
            f"{dropped} training texts that are repeated or that other parts have too are left out"
        )

    def label_scores(self, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy and macro F1."""
        return label_scores(answers)

    def baselines(self) -> Mapping[str, float]:
        """The most frequent label, and naive Bayes over bags of words."""
        return accuracy_baselines(
            self.parts["train"], self.parts["test"], self.sizes.source_vocabs[0]
        )

    def examples(self) -> Batch:
        """Texts written by us."""
        rows = []
        for text, label in self.own:
            sentences = [self.vocabulary.encode(words) for words in self.cut(text)]
            rows.append(_joined(sentences, label, text))
        return label_batch(rows, self.labels)


def _digest(rows: Mapping[str, Sequence[tuple[str, int]]]) -> str:
    """Hash of the texts of all parts, in their order."""
    digest = hashlib.sha256()
    for part in PARTS:
        for text, _ in rows[part]:
            digest.update(f"{part}\0{len(text)}\0{text}".encode())
    return digest.hexdigest()


def _encoded(
    rows: Mapping[str, Sequence[tuple[str, int]]], cut: Cut, config: ReadTextConfig
) -> dict[str, npt.NDArray[np.generic]]:
    """Vocabulary, ids and lengths of sentences, and numbers of sentences, as arrays."""
    texts = {part: [cut(text) for text, _ in rows[part]] for part in PARTS}
    sentences = (words for text in texts["train"] for words in text)
    vocabulary = Vocabulary.count(sentences, config.vocab, least=config.least)
    kept = "\n".join(vocabulary.words[len(SPECIAL_WORDS) :])
    arrays: dict[str, npt.NDArray[np.generic]] = {"words": np.frombuffer(kept.encode(), np.uint8)}
    for part in PARTS:
        packed = pack([vocabulary.encode(words) for text in texts[part] for words in text])
        arrays |= {f"{part}_{name}": array for name, array in packed.items()}
        arrays[f"{part}_sentences"] = np.asarray([len(text) for text in texts[part]], np.int32)
    return arrays


def _decoded(rows: Sequence[tuple[str, int]], arrays: Arrays, part: str) -> tuple[Labeled, ...]:
    """The texts of a part again."""
    sentences = unpack({name: arrays[f"{part}_{name}"] for name in ("ids", "lengths")})
    ends = np.cumsum(arrays[f"{part}_sentences"]).tolist()
    return tuple(
        _joined(sentences[begin:end], label, text)
        for (text, label), begin, end in zip(rows, [0, *ends], ends, strict=False)
    )


def _joined(sentences: Sequence[Sequence[int]], label: int, text: str) -> Labeled:
    """Sentences as one text; a text without words is one unknown word."""
    ids = [word for sentence in sentences for word in sentence] or [UNK]
    segments = [at for at, sentence in enumerate(sentences) for _ in sentence] or [0]
    return Labeled(ids, label, segments if len(sentences) > 1 else [], (), text)
