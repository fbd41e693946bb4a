"""Text classification, with generated or real texts: batches, scores and baselines."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.comparison import Entry
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.corpus import parts_note
from tasks.data.derived import Arrays, kept_arrays, pack, unpack
from tasks.data.drawing import shown_to_networks
from tasks.data.tables import DataSet
from tasks.data.words import BOS, SPECIAL_WORDS, UNK, Vocabulary
from tasks.metrics.labels import label_scores, majority
from tasks.metrics.scores import alignment_scores, strongest

ROWS = 128
"""Texts of one evaluation batch."""
POOLS_OF_EVENTS = tuple(
    Entry(variant=name)
    for name in ("seq2vec_attention", "context_vector", "sparsemax", "max_pooling", "last_state")
)
"""Comparison of the tasks over sequences of events."""


class Labelled(NamedTuple):
    """One text and its label."""

    ids: list[int]
    label: int
    segments: list[int] = []
    """Number of each word's sentence; empty where sentences do not matter."""
    gold: tuple[int, ...] = ()
    """Positions of the evidence, where it is known."""
    text: str = ""
    """The text as shown in reports."""


Parts = Mapping[str, Sequence[Labelled]]
PARTS = ("train", "validation", "test")


def label_batch(rows: Sequence[Labelled], labels: Sequence[str]) -> Batch:
    """Pad texts to one batch with one target a row; gold is spread evenly over the evidence."""
    tokens, real = pad_rows([row.ids for row in rows])
    segments = None
    if any(row.segments for row in rows):
        # a text of one sentence may be in a batch with others
        segments, _ = pad_rows([row.segments or [0] * len(row.ids) for row in rows])
    return Batch(
        sources=(Text(tokens, None if bool(real.all()) else real, segments),),
        inputs=torch.full((len(rows), 1), BOS),
        targets=torch.tensor([[row.label] for row in rows]),
        mask=torch.ones(len(rows), 1, dtype=torch.bool),
        gold=_gold(rows, tokens.shape[1]) if any(row.gold for row in rows) else None,
        references=tuple(labels[row.label] for row in rows),
        names=tuple(row.text for row in rows),
    )


def _gold(rows: Sequence[Labelled], width: int) -> Tensor:
    gold = torch.zeros(len(rows), 1, width)
    for number, row in enumerate(rows):
        for place in row.gold:
            gold[number, 0, place] = 1 / len(row.gold)
    return gold


def evaluation_batches(rows: Sequence[Labelled], labels: Sequence[str]) -> list[Batch]:
    """Texts of about equal length together."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index].ids))
    return [
        label_batch([rows[index] for index in order[at : at + ROWS]], labels)
        for at in range(0, len(order), ROWS)
    ]


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


def heaviest_segment(answers: Sequence[Answer]) -> float | None:
    """Share of texts whose segment with the most weight holds the gold; None without weights."""
    hits, total = 0, 0
    for answer in answers:
        weights, gold = answer.weights, answer.batch.gold
        segments = answer.batch.sources[0].segments
        if weights is None or gold is None or segments is None:
            continue
        count = int(segments.max()) + 1
        among = torch.zeros(len(segments), count).to(weights)
        best, points = strongest(among.scatter_add(1, segments, weights[:, 0]))
        true = segments.gather(1, gold[:, 0].argmax(1, keepdim=True)).squeeze(1)
        hits += int(((best == true) & points).sum())
        total += len(best)
    return hits / total if total else None


def naive_bayes(
    train: Sequence[Labelled], test: Sequence[Labelled], vocab: int
) -> npt.NDArray[np.float64]:
    """Probability of each label for the texts of the test, by bags of words (`N C`)."""
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - a second
    from sklearn.naive_bayes import MultinomialNB  # noqa: PLC0415

    counter = CountVectorizer(analyzer=list, vocabulary={number: number for number in range(vocab)})
    model = MultinomialNB().fit(
        counter.transform([row.ids for row in train]), [row.label for row in train]
    )
    found: npt.NDArray[np.float64] = model.predict_proba(
        counter.transform([row.ids for row in test])
    )
    return found


def accuracy_baselines(
    train: Sequence[Labelled], test: Sequence[Labelled], vocab: int
) -> dict[str, float]:
    """Accuracy of the most frequent label, and of naive Bayes over bags of words."""
    true = np.asarray([row.label for row in test])
    kinds = np.unique([row.label for row in train])
    said = kinds[naive_bayes(train, test, vocab).argmax(1)]
    return {
        "majority": majority([row.label for row in train], true.tolist()),
        "naive Bayes": float((said == true).mean()),
    }


def area_baselines(
    train: Sequence[Labelled], test: Sequence[Labelled], vocab: int
) -> dict[str, float]:
    """Area under the ROC curve of one answer for all, and of naive Bayes over bags of words."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - a second to import

    chance = naive_bayes(train, test, vocab)[:, 1]
    area = roc_auc_score([row.label for row in test], chance)
    return {"majority": 0.5, "naive Bayes": float(area)}


def hide_words(batch: Batch, share: float, generator: torch.Generator) -> Batch:
    """Turn a share of the words of a training batch into UNK, so that UNK is trained."""
    if not share:
        return batch

    def hidden(tokens: Tensor) -> Tensor:
        return tokens.masked_fill(torch.rand(tokens.shape, generator=generator) < share, UNK)

    (text,) = batch.sources
    whole = Text(hidden(text.tokens), text.mask, text.segments)
    return Batch(sources=(whole,), inputs=batch.inputs, targets=batch.targets, mask=batch.mask)


class TextTask(Task):
    """One label a text; a subclass makes the texts and names its metrics."""

    labels: ClassVar[tuple[str, ...]]
    """Names of the labels; a label's number is its position, and they are the target vocabulary."""

    def words(self, ids: Sequence[int]) -> list[str]:
        """Names of source tokens."""
        raise NotImplementedError

    def label_scores(self, answers: Sequence[Answer]) -> list[Scored]:
        """Values of the metrics of labels."""
        raise NotImplementedError

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Scores of the labels and of the attention weights."""
        found = [*self.label_scores(answers), *alignment_scores(answers, self.sizes.max_length)]
        declared = {metric.name for metric in self.metrics}
        return [scored for scored in found if scored.metric in declared]

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """Every n-th text, from short ones to long ones."""
        rows = []
        for answer in answers:
            assert answer.predicted is not None, "labels are predicted under teacher forcing"
            said = [self.labels[label] for label in answer.predicted[:, 0].tolist()]
            rows += list(zip(answer.batch.names, answer.batch.references, said, strict=True))
        return [Sample(*row) for row in rows[:: max(1, len(rows) // count)][:count]]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words, and names of labels."""
        return self.words(ids) if source else [self.labels[number] for number in ids]


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
    least: int = 2
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
            kept_under: Name, revision and options of `cut`.
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
        arrays = kept_arrays("texts", depends, lambda: _encoded(rows, cut, config))
        self.vocabulary = Vocabulary(arrays["words"].tobytes().decode().split("\n"))
        self.parts = {part: _decoded(rows[part], arrays, part) for part in PARTS}
        longest = max(len(row.ids) for part in PARTS for row in self.parts[part])
        self.sizes = Sizes((len(self.vocabulary),), len(self.labels), longest)
        self.notes["data"] = table.note
        self.notes["parts"] = parts_note(rows)
        self.notes["repeats"] = f"{dropped} training texts that other parts have too are left out"

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


def _decoded(rows: Sequence[tuple[str, int]], arrays: Arrays, part: str) -> tuple[Labelled, ...]:
    """The texts of a part again."""
    sentences = unpack({name: arrays[f"{part}_{name}"] for name in ("ids", "lengths")})
    ends = np.cumsum(arrays[f"{part}_sentences"]).tolist()
    return tuple(
        _joined(sentences[begin:end], label, text)
        for (text, label), begin, end in zip(rows, [0, *ends], ends, strict=False)
    )


def _joined(sentences: Sequence[Sequence[int]], label: int, text: str) -> Labelled:
    """Sentences as one text; a text without words is one unknown word."""
    ids = [word for sentence in sentences for word in sentence] or [UNK]
    segments = [at for at, sentence in enumerate(sentences) for _ in sentence] or [0]
    return Labelled(ids, label, segments if len(sentences) > 1 else [], (), text)


class DrawnTextTask(TextTask):
    """Texts that are drawn: training never ends, the other parts are fixed by the seed."""

    seed: int
    evaluate: int
    """Texts of validation, and of the test."""

    def draw(self, count: int, generator: torch.Generator) -> list[Labelled]:
        """New texts."""
        raise NotImplementedError

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh texts."""
        while True:
            yield label_batch(self.draw(batch_size, generator), self.labels)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Texts of a stream of their own."""
        return evaluation_batches(self._fixed(split), self.labels)

    def baselines(self) -> Mapping[str, float]:
        """The most frequent label, and naive Bayes over bags of words."""
        return accuracy_baselines(*self.counted())

    def counted(self) -> tuple[list[Labelled], list[Labelled], int]:
        """As many training texts as a network sees, the test, and the size of the vocabulary.

        For non-neural baselines, which count words.
        """
        count = shown_to_networks(type(self))
        train = self.draw(count, torch.Generator().manual_seed(self.seed))
        return train, self._fixed("test"), self.sizes.source_vocabs[0]

    def examples(self) -> Batch:
        """The first texts of the test."""
        return label_batch(self._fixed("test")[:3], self.labels)

    def _fixed(self, split: Split) -> list[Labelled]:
        return self.draw(self.evaluate, self.seeded(split))
