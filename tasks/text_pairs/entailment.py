"""Two texts and their relation: labels, batches, scores, baselines of entailment tasks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Text
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.snli import RELATIONS
from tasks.data.words import Vocabulary
from tasks.metrics.labels import LABEL_ACCURACY, MACRO_F1, label_scores, majority

COUNTERFACTUAL_ACCURACY = Metric(
    name="counterfactual_accuracy",
    title="Accuracy on minimal pairs",
    unit="fraction of examples",
    low=0.0,
    high=1.0,
    better="higher",
)
EVALUATION_ROWS = 256
"""Pairs of one evaluation batch."""


class Labeled(NamedTuple):
    """Two texts as ids, and their relation."""

    premise: list[int]
    hypothesis: list[int]
    label: int


class Inference(Task):
    """Whether the premise entails the hypothesis, contradicts it, or leaves it open.

    A subclass sets `words`, `rows` and `sizes`; minimal pairs are scored apart.
    """

    metrics = (LABEL_ACCURACY, MACRO_F1, COUNTERFACTUAL_ACCURACY)
    capabilities = frozenset({"source_tokens"})
    family = "text pairs (NLI)"
    chance = 1 / len(RELATIONS)

    words: Vocabulary

    def rows(self, split: Split) -> Sequence[Labeled]:
        """Pairs of a split."""
        raise NotImplementedError

    def changed(self, split: Split) -> Sequence[Labeled]:
        """Pairs that differ from others by little, and in their label."""
        raise NotImplementedError

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """The pairs of the split, and behind them the minimal pairs."""
        return [*fixed_batches(self.rows(split)), *fixed_batches(self.changed(split))]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy and macro F1 of the split, accuracy of the minimal pairs."""
        plain = -(-len(self.rows(split)) // EVALUATION_ROWS)
        found = label_scores(answers[:plain])
        if answers[plain:]:
            value = next(
                s.value for s in label_scores(answers[plain:]) if s.metric == LABEL_ACCURACY.name
            )
            found.append(Scored(metric=COUNTERFACTUAL_ACCURACY.name, value=value))
        return found

    def baselines(self) -> Mapping[str, float]:
        """The most frequent label, and naive Bayes on the words of the hypothesis alone."""
        train, test = self.rows("train"), self.rows("test")
        return {
            "majority": majority([row.label for row in train], [row.label for row in test]),
            "hypothesis alone (naive Bayes)": hypothesis_alone(train, test),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples of the middle batch."""
        answer = answers[len(answers) // 2]
        assert answer.predicted is not None, "labels are predicted under teacher forcing"
        found = []
        for row in range(min(count, len(answer.batch.targets))):
            texts = (" ".join(self.words.decode(t.ids(row))) for t in answer.batch.sources)
            true, said = int(answer.batch.targets[row, 0]), int(answer.predicted[row, 0])
            found.append(Sample(" → ".join(texts), RELATIONS[true], RELATIONS[said]))
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words of a text, or names of relations."""
        if source:
            return self.words.decode(ids)
        return [RELATIONS[number] for number in ids]

    def written(self, examples: Sequence[tuple[str, str, str]]) -> Batch:
        """Encode pairs written by us, as `(premise, hypothesis, relation)` with words apart."""
        rows = [
            Labeled(
                self.words.encode(premise.split()),
                self.words.encode(hypothesis.split()),
                RELATIONS.index(relation),
            )
            for premise, hypothesis, relation in examples
        ]
        names = tuple(f"{premise} → {hypothesis}" for premise, hypothesis, _ in examples)
        return label_batch(rows, names, tuple(relation for _, _, relation in examples))


def text_of(rows: Sequence[Sequence[int]]) -> Text:
    """Padded ids."""
    tokens, real = pad_rows(rows)
    return Text(tokens, None if bool(real.all()) else real)


def label_batch(
    rows: Sequence[Labeled], names: tuple[str, ...] = (), references: tuple[str, ...] = ()
) -> Batch:
    """Two texts a row and one label."""
    label = torch.tensor([[row.label] for row in rows], dtype=torch.int64).reshape(len(rows), 1)
    return Batch(
        sources=(text_of([row.premise for row in rows]), text_of([row.hypothesis for row in rows])),
        inputs=torch.ones_like(label),
        targets=label,
        mask=torch.ones_like(label, dtype=torch.bool),
        names=names,
        references=references,
    )


def lengths(rows: Sequence[Labeled]) -> list[tuple[int, ...]]:
    """Sort keys of pairs, so that little is padded."""
    return [(len(row.premise), len(row.hypothesis)) for row in rows]


def epochs(rows: Sequence[Labeled], batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
    """Endless epochs of batches of similar length."""
    ranks = lengths(rows)
    while True:
        for chosen in bucketed_batches(ranks, batch_size, generator):
            yield label_batch([rows[index] for index in chosen])


def fixed_batches(rows: Sequence[Labeled]) -> list[Batch]:
    """All rows, those of similar length together."""
    ranks = lengths(rows)
    order = sorted(range(len(rows)), key=ranks.__getitem__)
    return [
        label_batch([rows[index] for index in order[at : at + EVALUATION_ROWS]])
        for at in range(0, len(order), EVALUATION_ROWS)
    ]


def hypothesis_alone(train: Sequence[Labeled], test: Sequence[Labeled]) -> float:
    """Accuracy of naive Bayes that never sees a premise.

    Gururangan et al., 2018, "Annotation artifacts in natural language inference data",
    https://aclanthology.org/N18-2017, has it with another classifier.
    """
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415
    from sklearn.naive_bayes import MultinomialNB  # noqa: PLC0415

    counter = CountVectorizer(analyzer=str.split)
    texts = ([" ".join(map(str, row.hypothesis)) for row in rows] for rows in (train, test))
    seen, unseen = texts
    model = MultinomialNB().fit(counter.fit_transform(seen), [row.label for row in train])
    return float(model.score(counter.transform(unseen), [row.label for row in test]))
