"""Similarity of two texts as a number: batches, correlations, baselines."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Text
from bench.api.comparison import Entry
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.words import Vocabulary

PEARSON = Metric(
    name="pearson_correlation",
    title="Pearson correlation",
    unit="correlation from -1 to 1",
    low=-1.0,
    high=1.0,
    better="higher",
    margin=0.05,
)
SPEARMAN = Metric(
    name="spearman_correlation",
    title="Spearman correlation",
    unit="correlation of ranks from -1 to 1",
    low=-1.0,
    high=1.0,
    better="higher",
    margin=0.05,
)
SQUARED_ERROR = Metric(
    name="squared_error_points",
    title="Mean squared error",
    unit="squared points of 0 to 5",
    low=0.0,
    high=None,
    better="lower",
)
ALIGNERS = tuple(Entry(variant=name) for name in ("decomposable", "dot", "additive", "sparsemax"))
"""Comparison of every similarity task; each adds a pair network with a recurrent encoder."""
MOST = 5.0
"""Score of two texts that mean the same."""
EVALUATION_ROWS = 256
"""Pairs of one evaluation batch."""


class Graded(NamedTuple):
    """Two texts as ids, and how much of their meaning they share, from 0 to 5."""

    first: list[int]
    second: list[int]
    score: float


class Similarity(Task):
    """How much two texts mean the same. A subclass sets `words`, `rows` and `sizes`."""

    metrics = (PEARSON, SPEARMAN, SQUARED_ERROR)
    capabilities = frozenset({"source_tokens"})
    family = "semantic similarity"
    regresses = True
    chance = 0.0

    words: Vocabulary

    def rows(self, split: Split) -> Sequence[Graded]:
        """Pairs of a split."""
        raise NotImplementedError

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """All pairs, those of similar length together."""
        rows = sorted(self.rows(split), key=_length)
        return [
            graded_batch(rows[at : at + EVALUATION_ROWS])
            for at in range(0, len(rows), EVALUATION_ROWS)
        ]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Correlations, by SciPy, and the mean squared error."""
        true, said = [], []
        for answer in answers:
            assert answer.values is not None, "numbers are predicted"
            assert answer.batch.values is not None, "targets are numbers"
            true += answer.batch.values.flatten().tolist()
            said += answer.values.flatten().tolist()
        missed = sum((a - b) ** 2 for a, b in zip(true, said, strict=True)) / len(true)
        return [
            Scored(metric=PEARSON.name, value=correlation(true, said)),
            Scored(metric=SPEARMAN.name, value=correlation(true, said, ranks=True)),
            Scored(metric=SQUARED_ERROR.name, value=missed),
        ]

    def baselines(self) -> Mapping[str, float]:
        """Non-neural: Pearson's r of word overlap and of TF-IDF."""
        rows = self.rows("test")
        true = [row.score for row in rows]
        return {
            "shared words": correlation(true, [overlap(row.first, row.second) for row in rows]),
            "cosine of TF-IDF": correlation(true, tf_idf(self.rows("train"), rows)),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples of the middle batch."""
        answer = answers[len(answers) // 2]
        assert answer.values is not None, "numbers are predicted"
        assert answer.batch.values is not None, "targets are numbers"
        found = []
        for row in range(min(count, len(answer.values))):
            texts = (" ".join(self.words.decode(t.ids(row))) for t in answer.batch.sources)
            numbers = (answer.batch.values[row, 0, 0], answer.values[row, 0, 0])
            found.append(Sample(" | ".join(texts), *(f"{float(n):.2f}" for n in numbers)))
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words; the target is no word."""
        return self.words.decode(ids) if source else ["score" for _ in ids]

    def written(self, examples: Sequence[tuple[str, str, float]]) -> Batch:
        """Encode pairs written by us, words at spaces."""
        rows = [
            Graded(self.words.encode(one.split()), self.words.encode(two.split()), score)
            for one, two, score in examples
        ]
        names = tuple(f"{one} | {two}" for one, two, _ in examples)
        return graded_batch(rows, names, tuple(f"{score:.3g}" for _, _, score in examples))


def graded_batch(
    rows: Sequence[Graded], names: tuple[str, ...] = (), references: tuple[str, ...] = ()
) -> Batch:
    """Two texts a row and one number."""
    nothing = torch.zeros(len(rows), 1, dtype=torch.int64)
    return Batch(
        sources=(
            Text(*pad_rows([row.first for row in rows])),
            Text(*pad_rows([row.second for row in rows])),
        ),
        inputs=nothing,
        targets=nothing,
        mask=torch.ones_like(nothing, dtype=torch.bool),
        values=torch.tensor([row.score for row in rows]).reshape(len(rows), 1, 1),
        names=names,
        references=references,
    )


def graded_epochs(
    rows: Sequence[Graded], batch_size: int, generator: torch.Generator
) -> Iterator[Batch]:
    """Endless epochs of batches of similar length."""
    ranks = [_length(row) for row in rows]
    while True:
        for chosen in bucketed_batches(ranks, batch_size, generator):
            yield graded_batch([rows[index] for index in chosen])


def correlation(true: Sequence[float], said: Sequence[float], *, ranks: bool = False) -> float:
    """Pearson's or Spearman's; 0 where one side never changes, for which there is none.

    >>> correlation([1.0, 2.0, 3.0], [2.0, 4.0, 9.0], ranks=True)
    1.0
    """
    from scipy.stats import pearsonr, spearmanr  # noqa: PLC0415 - half a second to import

    if len(true) < 2 or min(map(_spread, (true, said))) < 1e-9 * max(1.0, *map(abs, said)):
        return 0.0
    value = float((spearmanr if ranks else pearsonr)(true, said)[0])
    return round(value, 12) if math.isfinite(value) else 0.0


def overlap(one: Sequence[int], two: Sequence[int]) -> float:
    """Words of both texts, as a share of the words of either."""
    return len({*one} & {*two}) / max(1, len({*one} | {*two}))


def tf_idf(train: Sequence[Graded], test: Sequence[Graded]) -> list[float]:
    """Cosines of the test's texts, words weighed by their rarity in the training part."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    def text(ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))

    counter = TfidfVectorizer(analyzer=str.split)
    counter.fit([text(side) for row in train for side in (row.first, row.second)])
    one = counter.transform([text(row.first) for row in test])
    two = counter.transform([text(row.second) for row in test])
    return [float(value) for value in one.multiply(two).toarray().sum(1)]


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _length(row: Graded) -> tuple[int, ...]:
    return len(row.first), len(row.second)
