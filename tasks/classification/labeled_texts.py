"""Labeled texts: batches, segments, and the base of tasks that classify text."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Text
from bench.api.comparison import Entry
from bench.api.metric import Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import pad_rows
from tasks.data.samples import every_nth
from tasks.data.words import BOS
from tasks.metrics.attention_scores import alignment_scores, strongest

ROWS = 128
"""Texts of one evaluation batch."""
POOLS_OF_EVENTS = tuple(
    Entry(variant=name)
    for name in ("seq2vec_attention", "context_vector", "sparsemax", "max_pooling", "last_state")
)
"""Comparison of the tasks over sequences of events."""


class Labeled(NamedTuple):
    """One text and its label."""

    ids: list[int]
    label: int
    segments: list[int] = []
    """Number of each word's sentence; empty where sentences do not matter."""
    gold: tuple[int, ...] = ()
    """Positions of the evidence, where it is known."""
    text: str = ""
    """The text as shown in reports."""


Parts = Mapping[str, Sequence[Labeled]]
PARTS = ("train", "validation", "test")


def label_batch(rows: Sequence[Labeled], labels: Sequence[str]) -> Batch:
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


def _gold(rows: Sequence[Labeled], width: int) -> Tensor:
    gold = torch.zeros(len(rows), 1, width)
    for number, row in enumerate(rows):
        for place in row.gold:
            gold[number, 0, place] = 1 / len(row.gold)
    return gold


def evaluation_batches(rows: Sequence[Labeled], labels: Sequence[str]) -> list[Batch]:
    """Texts of about equal length together."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index].ids))
    return [
        label_batch([rows[index] for index in order[at : at + ROWS]], labels)
        for at in range(0, len(order), ROWS)
    ]


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
        return [Sample(*row) for row in every_nth(rows, count)]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words, and names of labels."""
        return self.words(ids) if source else [self.labels[number] for number in ids]
