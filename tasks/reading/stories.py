"""Questions about a story: batches, scores, baselines."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Text
from bench.api.comparison import Entry
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.task import Split, Task
from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.words import Vocabulary
from tasks.metrics.attention_scores import ALIGNMENT_MATCH, alignment_scores
from tasks.metrics.labels import LABEL_ACCURACY

ERROR = Metric(
    name="error_proportion",
    title="Error, mean over tasks",
    unit="fraction of questions",
    low=0.0,
    high=1.0,
    better="lower",
)
SOLVED = Metric(
    name="solved_count",
    title="Tasks with at most 5 % error",
    unit="count of tasks",
    low=0.0,
    high=None,
    better="higher",
)
SOLVED_ERROR = 0.05
EVALUATION_ROWS = 250
"""Questions of one evaluation batch."""


def readers(task: str) -> tuple[Entry, ...]:
    """Mechanisms that answer questions: over memory with several hops or one, and over one text."""
    return (
        Entry(variant="dot"),
        Entry(variant="dot", backbone="memn2n[width=32,hops=1]"),
        Entry(variant="uniform", backbone="memn2n[width=32,hops=1]"),
        Entry(variant="additive"),
        Entry(variant="sparsemax"),
        Entry(
            variant="scaled_dot",
            task=f"{task}[joined=true]",
            backbone="pooling[embedding=32,encoder=transformer]",
        ),
    )


class Asked(NamedTuple):
    """A question about a story, as ids."""

    story: tuple[list[int], ...]
    question: list[int]
    answer: int
    supporting: tuple[int, ...]
    """Positions of sentences that the answer follows from."""
    number: int
    """Number of the task, or of the facts that the answer needs."""
    seen: bool = False
    """Whether training has the same question about the same story, word for word."""


class Reading(Task):
    """Sources are the story, cut into sentences, and the question; or both as one text.

    A subclass sets `words`, `joined`, `axis` and `sizes`. Gold alignments are the supporting facts,
    spread evenly over their words.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (LABEL_ACCURACY, ERROR, SOLVED, ALIGNMENT_MATCH)
    capabilities = frozenset({"gold_alignment", "source_tokens"})
    family = "question answering over memory"

    words: Vocabulary
    joined: bool
    axis: str
    """Name of the axis of task numbers."""

    def rows(self, split: Split) -> Sequence[Asked]:
        """Questions of a split."""
        raise NotImplementedError

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Task by task, so that each batch belongs to one."""
        return [question_batch(rows, self.joined) for rows in self.in_batches(split)]

    def in_batches(self, split: Split) -> list[list[Asked]]:
        """Questions of each evaluation batch, in the order of its rows."""
        batches = []
        for number in sorted({row.number for row in self.rows(split)}):
            rows = [row for row in self.rows(split) if row.number == number]
            rows.sort(key=_length)
            for at in range(0, len(rows), EVALUATION_ROWS):
                batches.append(rows[at : at + EVALUATION_ROWS])
        return batches

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy over all questions, error of each task, tasks solved, facts found."""
        right: dict[int, list[bool]] = {}
        for answer in answers:
            assert answer.predicted is not None, "answers are predicted under teacher forcing"
            good = (answer.predicted == answer.batch.targets)[:, 0].tolist()
            for name, one in zip(answer.batch.names, good, strict=True):
                right.setdefault(int(name), []).append(one)
        errors = {number: good.count(False) / len(good) for number, good in sorted(right.items())}
        every = [one for good in right.values() for one in good]
        solved = sum(error <= SOLVED_ERROR for error in errors.values())
        found = [
            Scored(metric=LABEL_ACCURACY.name, value=sum(every) / len(every)),
            Scored(metric=ERROR.name, value=sum(errors.values()) / len(errors)),
            Scored(metric=SOLVED.name, value=float(solved)),
        ]
        found += [
            Scored(metric=ERROR.name, value=error, axis=self.axis, x=float(number))
            for number, error in errors.items()
        ]
        matched = alignment_scores(answers, self.sizes.max_length)
        return found + [s for s in matched if s.metric == ALIGNMENT_MATCH.name]

    def baselines(self) -> Mapping[str, float]:
        """The answer that training gives most often to questions of a type.

        A type is a task and the first word of the question.
        """
        counted: dict[tuple[int, int], Counter[int]] = {}
        for row in self.rows("train"):
            counted.setdefault((row.number, row.question[0]), Counter())[row.answer] += 1
        most = {kind: max(sorted(c), key=c.__getitem__) for kind, c in counted.items()}
        test = self.rows("test")
        good = sum(most.get((row.number, row.question[0])) == row.answer for row in test)
        return {"most frequent answer of its type": good / len(test)}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First questions of tasks far apart."""
        found = []
        for answer in answers[:: max(1, len(answers) // max(1, count))][:count]:
            assert answer.predicted is not None, "answers are predicted under teacher forcing"
            texts = (" ".join(self.words.decode(t.ids(0))) for t in answer.batch.sources)
            true, said = int(answer.batch.targets[0, 0]), int(answer.predicted[0, 0])
            found.append(Sample(" | ".join(texts), *self.words.decode([true, said])))
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words; answers are words too."""
        return self.words.decode(ids)

    def written(self, stories: Sequence[tuple[str, str, str, tuple[int, ...]]]) -> Batch:
        """Encode stories written by us: sentences with full stops, question, answer, facts."""
        rows = []
        for story, question, answer, supporting in stories:
            sentences = [f"{part.strip()} ." for part in story.split(".") if part.strip()]
            ids = tuple(self.words.encode(sentence.split()) for sentence in sentences)
            asked = self.words.encode(question.split())
            rows.append(Asked(ids, asked, self.words.encode([answer])[0], supporting, 0))
        return replace(
            question_batch(rows, self.joined),
            names=tuple(f"{story} {question}" for story, question, _, _ in stories),
            references=tuple(answer for _, _, answer, _ in stories),
        )


def question_batch(rows: Sequence[Asked], joined: bool) -> Batch:
    """Stories cut into sentences, questions, and the words of supporting facts as gold.

    `names` are the numbers of the tasks, by which answers are scored.
    """
    tail = [row.question if joined else [] for row in rows]
    told = [[w for s in row.story for w in s] + end for row, end in zip(rows, tail, strict=True)]
    places = [
        [n for n, s in enumerate(row.story) for _ in s] + [len(row.story)] * len(end)
        for row, end in zip(rows, tail, strict=True)
    ]
    tokens, real = pad_rows(told)
    segments, _ = pad_rows(places, pad=-1)
    gold = torch.zeros(tokens.shape)
    for index, row in enumerate(rows):
        for fact in row.supporting:
            gold[index][segments[index] == fact] = 1.0
    gold = gold / gold.sum(1, keepdim=True).clamp(min=1.0)
    answer = torch.tensor([[row.answer] for row in rows], dtype=torch.int64).reshape(len(rows), 1)
    story = Text(tokens, real, segments.clamp(min=0))
    asked = Text(*pad_rows([row.question for row in rows]))
    return Batch(
        sources=(story,) if joined else (story, asked),
        inputs=torch.ones_like(answer),
        targets=answer,
        mask=torch.ones_like(answer, dtype=torch.bool),
        gold=gold.unsqueeze(1),
        names=tuple(str(row.number) for row in rows),
    )


def question_epochs(
    rows: Sequence[Asked], batch_size: int, generator: torch.Generator, joined: bool
) -> Iterator[Batch]:
    """Endless epochs of batches of stories of similar length.

    Raises:
        InvalidConfig: There are no questions, so that no batch would ever come.
    """
    if not rows:
        raise InvalidConfig("there are no questions to train on; ask for more.")
    ranks = [_length(row) for row in rows]
    while True:
        for chosen in bucketed_batches(ranks, batch_size, generator):
            yield question_batch([rows[index] for index in chosen], joined)


def _length(row: Asked) -> tuple[int, ...]:
    return len(row.story), sum(map(len, row.story))
