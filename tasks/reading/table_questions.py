"""Questions about a table of numbers: which operation on which column, and on which rows.

Neelakantan, Le & Sutskever, 2016, "Neural programmer: inducing latent programs with gradient
descent", https://arxiv.org/abs/1511.04834, section 3.1 (generated tables and questions).

Deviations: numbers are between 0 and 1. Questions ask for the sum, the largest or the
smallest number of a column, for all rows or for those that another column selects, or count rows;
there is no logic, no difference and no lookup. Columns stand in another order in every table, so
that only their names say which is which.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH, alignment_scores
from tasks.metrics.numbers import MEAN_SQUARED_ERROR, mean_squared_error, numbers

STATISTICS = ("sum", "max", "min")
COUNT, GREATER, LESSER = "count", "greater", "lesser"
WORDS = ("", *STATISTICS, COUNT, GREATER, LESSER)
"""Words of questions by their ids; names of columns come behind them."""
FIRST_NAME = len(WORDS)
LONGEST = 4
"""Words of a question: what is asked of which column, where which other is above or below."""
NEAR = 0.05
"""Largest distance from the right number of an answer that counts as right."""
COUNTED = 1000
"""Training questions that baselines are counted on."""
ANSWER_ACCURACY = Metric(
    name="answer_accuracy",
    title="Answers within 0.05",
    unit="fraction of answers",
    low=0.0,
    high=1.0,
    better="higher",
)


@dataclass(frozen=True, kw_only=True)
class TableQuestionsConfig(Config):
    """Options of questions about tables."""

    rows: Annotated[int, IntRange(2, 50)] = 6
    """Rows of a table in training."""
    more_rows: int = 12
    """Rows of the largest table of the test."""
    columns: Annotated[int, IntRange(2, 10)] = 3
    """Columns of a table."""
    names: Annotated[int, IntRange(2, 50)] = 6
    """Names that columns may have."""
    conditions: bool = True
    """Whether questions have conditions on rows; without, each is about a whole column."""
    evaluate: int = 256
    """Questions of validation, and of each size of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        ordered = 2 <= self.rows <= self.more_rows and 2 <= self.columns <= self.names
        if not ordered or self.evaluate < 1:
            raise InvalidConfig(
                "table_questions: 2 <= rows <= more_rows, 2 <= columns <= names and evaluate >= 1, "
                f"got {self.rows}, {self.more_rows}, {self.columns}, {self.names}, {self.evaluate}."
            )


@register(
    "task",
    "table_questions",
    config=TableQuestionsConfig,
    citation=Citation(
        text="Neelakantan et al., 2016",
        url="https://arxiv.org/abs/1511.04834",
        where="section 3.1",
    ),
)
class TableQuestions(Task):
    """A table, the names of its columns, a question in a few words, and its number.

    >>> task = TableQuestions(TableQuestionsConfig(evaluate=3), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> words = [task.tokens(row, source=True) for row in batch.sources[1].tokens.tolist()]
    >>> [" ".join(row).strip() for row in words]
    ['min c1 greater c2', 'sum c2', 'count lesser c4']
    """

    family = "reading"
    metrics = (ANSWER_ACCURACY, MEAN_SQUARED_ERROR, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)
    capabilities = frozenset({"gold_alignment"})
    regresses = True
    ceiling = 1.0
    comparison = tuple(Entry(variant=name) for name in ("neural_programmer", "additive"))
    presets = {
        "smoke": TaskPreset(
            options="table_questions[rows=3,more_rows=4,columns=2,names=3,evaluate=16]",
            backbone="neural_programmer[width=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="table_questions",
            backbone="neural_programmer",
            protocol="adam[lr=0.005,steps=2000,batch=64,evaluate_every=250,stop_at=0.99]",
            seconds=16.0,
        ),
        "standard": TaskPreset(
            options="table_questions[rows=10,more_rows=20,columns=5,names=10]",
            backbone="neural_programmer[width=64]",
            protocol="adam[lr=0.005,steps=10000,batch=64,evaluate_every=1000,stop_at=0.995]",
            seconds=120.0,
        ),
    }

    def __init__(
        self, config: TableQuestionsConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        words = FIRST_NAME + config.names
        longest = max(LONGEST, config.columns)
        self.sizes = Sizes((words, words), 1, longest, input_frames=1, features=config.columns)
        middle = (config.rows + config.more_rows) // 2
        self.tested = tuple(sorted({config.rows, middle, config.more_rows}))

    @classmethod
    def trained_to_of(cls, config: TableQuestionsConfig) -> float:
        """The rows of a table in training."""
        return float(config.rows)

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh tables and questions."""
        while True:
            yield self._batch(batch_size, self.config.rows, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation as in training; the test has larger tables, too."""
        generator = self.seeded(split)
        counts = self.tested if split == "test" else (self.config.rows,)
        return [self._batch(self.config.evaluate, count, generator) for count in counts]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Scores at the size of training, and the accuracy by the rows of a table."""
        found = []
        for answer in answers:
            assert answer.batch.features is not None, "tables are features"
            rows = answer.batch.features.shape[1]
            true, said = numbers([answer])
            right = _right(true, said)
            if rows == self.config.rows:
                error = mean_squared_error(true, said)
                found += [
                    Scored(metric=ANSWER_ACCURACY.name, value=right),
                    Scored(metric=MEAN_SQUARED_ERROR.name, value=error),
                    *alignment_scores([answer], self.sizes.max_length),
                ]
            if split == "test":
                found.append(
                    Scored(metric=ANSWER_ACCURACY.name, value=right, axis="length", x=float(rows))
                )
        return found

    def baselines(self) -> Mapping[str, float]:
        """The best single number for all questions of training."""
        train = self._batch(COUNTED, self.config.rows, self.seeded(4)).values
        test = self.evaluation("test")[0].values
        assert train is not None, "answers are numbers"
        assert test is not None, "answers are numbers"
        known = train.flatten().tolist()
        best = max(known, key=lambda number: _right(known, [number] * len(known)))
        true = test.flatten().tolist()
        return {"most frequent number": _right(true, [best] * len(true))}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First questions, right numbers, predicted ones."""
        batch, said = answers[0].batch, answers[0].values
        assert batch.values is not None, "answers are numbers"
        assert said is not None, "numbers are predicted"
        shown = zip(batch.values.flatten().tolist(), said.flatten().tolist(), strict=True)
        return [
            Sample(self._question(batch, row), f"{true:.2f}", f"{answer:.2f}")
            for row, (true, answer) in enumerate(shown)
        ][:count]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Words of questions, and columns by number; an answer has no name."""
        if not source:
            return ["number"] * len(ids)
        return [WORDS[n] if n < FIRST_NAME else f"c{n - FIRST_NAME}" for n in ids]

    def _question(self, batch: Batch, row: int) -> str:
        assert batch.frames is not None, "the number of a question"
        words = self.tokens(batch.sources[1].tokens[row].tolist(), source=True)
        pivot = float(batch.frames[row, 0, 0])
        return " ".join([*filter(None, words), *([f"{pivot:.2f}"] if pivot else [])])

    def _batch(self, rows: int, size: int, generator: torch.Generator) -> Batch:
        """Questions about tables of one size."""
        config = self.config

        def draw(count: int) -> Tensor:
            return torch.randint(count, (rows,), generator=generator)

        table = torch.rand(rows, size, config.columns, generator=generator)
        order = torch.rand(rows, config.names, generator=generator).argsort(1)
        header = FIRST_NAME + order[:, : config.columns]
        kind = draw(3) if config.conditions else torch.zeros(rows, dtype=torch.int64)
        wanted, asked, other, above = draw(3), draw(config.columns), draw(config.columns), draw(2)
        conditioned, counts = kind > 0, kind == 1
        compared = _column(table, other)
        pivot = _between(compared, 1 + draw(size - 1))
        chosen = torch.where(above[:, None] > 0, compared > pivot, compared < pivot)
        chosen = chosen | ~conditioned[:, None]
        number = _answers(_column(table, asked), chosen).gather(1, wanted[:, None])
        number = torch.where(counts[:, None], chosen.sum(1, keepdim=True).float(), number)
        compare = torch.where(above > 0, WORDS.index(GREATER), WORDS.index(LESSER))
        named = (header.gather(1, place[:, None]).squeeze(1) for place in (asked, other))
        words = torch.stack((1 + wanted, next(named), compare, next(named)), 1)
        # a count has no column of its own, so what it compares moves up
        counted = torch.stack((0 * kind + WORDS.index(COUNT), *words.unbind(1)[2:], 0 * kind), 1)
        words = torch.where(counts[:, None], counted, words)
        words[:, 2:] *= conditioned[:, None]
        gold = torch.nn.functional.one_hot(asked, config.columns).float()
        return Batch(
            sources=(Text(header, None), Text(words, words > 0)),
            inputs=torch.ones(rows, 1, dtype=torch.int64),
            targets=torch.zeros(rows, 1, dtype=torch.int64),
            mask=torch.ones(rows, 1, dtype=torch.bool),
            gold=(gold * ~counts[:, None]).unsqueeze(1),
            values=number.unsqueeze(1),
            frames=(pivot * conditioned[:, None]).unsqueeze(1),
            features=table,
        )


def _column(table: Tensor, place: Tensor) -> Tensor:
    """One column of each table, B R."""
    index = place[:, None, None].expand(-1, table.shape[1], 1)
    return table.gather(2, index).squeeze(2)


def _between(column: Tensor, rank: Tensor) -> Tensor:
    """A number above as many numbers of each column as its rank, B 1."""
    ordered = column.sort(1).values
    below, above = (ordered.gather(1, place[:, None]) for place in (rank - 1, rank))
    return (below + above) / 2


def _answers(column: Tensor, chosen: Tensor) -> Tensor:
    """Sum, largest and smallest of the chosen numbers, B 3."""
    whole = torch.where(chosen, column, 0.0).sum(1)
    largest = torch.where(chosen, column, float("-inf")).amax(1)
    smallest = torch.where(chosen, column, float("inf")).amin(1)
    return torch.stack((whole, largest, smallest), 1)


def _right(true: Sequence[float], said: Sequence[float]) -> float:
    """Share of answers that are near enough."""
    return sum(abs(t - s) <= NEAR for t, s in zip(true, said, strict=True)) / len(true)
