"""Adding and multiplication of two marked numbers in a long sequence.

Hochreiter & Schmidhuber, 1997, "Long short-term memory",
https://doi.org/10.1162/neco.1997.9.8.1735, experiments 4 and 5; by attention in Raffel & Ellis,
2015, "Feed-forward networks with attention can solve some long-term memory problems",
https://arxiv.org/abs/1512.08756, section 3.

Deviations: shorter sequences, and training ends after a fixed number of updates instead of once
the task is solved.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH, alignment_scores
from tasks.metrics.numbers import MEAN_SQUARED_ERROR, mean_squared_error, numbers

SUCCESS = Metric(
    name="success_accuracy",
    title="Success rate",
    unit="fraction of sequences",
    low=0.0,
    high=1.0,
    better="higher",
)
NEAR = 0.04
"""An error below this is a success."""
FIRST_MARKER = 10
"""The first marker is among this many first positions."""
RECURRENT = "pooling_perceptron[encoder=uni_rnn[cell={}],embedding=32,hidden=32]"


@dataclass(frozen=True, kw_only=True)
class AddingConfig(Config):
    """Options of the adding and the multiplication problem."""

    operation: Annotated[Literal["add", "multiply"], Choices(("add", "multiply"))] = "add"
    """The function of the two numbers: 0.5 + (a + b) / 4 of numbers from -1 to 1, or a b of
    numbers from 0 to 1."""
    min_length: Annotated[int, IntRange(20, 1000, log=True)] = 25
    """Shortest T0; sequences have T0 to 1.1 T0 positions."""
    max_length: Annotated[int, IntRange(20, 10000, log=True)] = 200
    """Longest T0; each training batch draws one, log-uniformly."""
    evaluate: int = 250
    """Examples of each length, in validation and in the test: four of them, and fewer where the
    shortest and the longest are near each other."""

    def __post_init__(self) -> None:
        """Check the lengths."""
        if not 20 <= self.min_length <= self.max_length:
            raise InvalidConfig(
                "adding: 20 <= min_length <= max_length, "
                f"got {self.min_length} and {self.max_length}."
            )
        if self.evaluate < 1:
            raise InvalidConfig(f"adding: evaluate must be at least 1, got {self.evaluate}.")


@register(
    "task",
    "adding",
    config=AddingConfig,
    citation=Citation(
        text="Raffel and Ellis, 2015", url="https://arxiv.org/abs/1512.08756", where="section 3"
    ),
)
class Adding(Task):
    """Each position has a number and a marker: 1 at two positions, -1 at both ends, else 0.

    >>> task = Adding(AddingConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> number, marker = batch.sources[0].frames[0].unbind(-1)
    >>> bool((0.5 + number[marker == 1].sum() / 4 - batch.values[0, 0, 0]).abs() < 1e-6)
    True
    """

    metrics = (SUCCESS, MEAN_SQUARED_ERROR, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)
    capabilities = frozenset({"gold_alignment"})
    family = "long-term memory"
    published_results = (
        PublishedResult(
            what=(
                "feed-forward attention; solved, which the authors' code takes as an error below "
                "0.04 on each of 1000 test sequences"
            ),
            metric=SUCCESS.name,
            value=1.0,
            text="Raffel & Ellis, 2015",
            url="https://arxiv.org/abs/1512.08756",
            where="abstract; criterion in craffel/ff-attention, toy_problems",
            differs=(
                "Networks for one length each, or for all from 50 to 10000; 100 units, batches of "
                "100 and up to 100000 updates, the best of several learning rates."
            ),
            about="adding[operation=add]",
        ),
    )
    regresses = True
    ceiling = 1.0
    presets = {
        "smoke": TaskPreset(
            options="adding[max_length=40,evaluate=32]",
            backbone="pooling_perceptron[embedding=16,hidden=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="adding[min_length=200,max_length=1000,evaluate=100]",
            backbone="pooling_perceptron[embedding=32,hidden=32]",
            protocol=("adam[steps=2000,cpu_seconds=25,batch=16,evaluate_every=400,stop_at=0.999]"),
            seconds=10.5,
        ),
        "standard": TaskPreset(
            options="adding[min_length=50,max_length=1000]",
            backbone="pooling_perceptron[embedding=100,hidden=100]",
            protocol="adam[steps=10000,batch=100,evaluate_every=1000,stop_at=0.999]",
            seconds=200.0,
        ),
    }
    comparison = (
        Entry(variant="feed_forward"),
        Entry(variant="additive"),
        Entry(variant="last_state", backbone=RECURRENT.format("lstm")),
        Entry(variant="last_state", backbone=RECURRENT.format("gru")),
        Entry(variant="feed_forward", task="adding[operation=multiply]"),
        Entry(variant="scaled_dot", task="adding[operation=multiply]"),
        Entry(variant="uniform", task="adding[operation=multiply]"),
    )

    def __init__(self, config: AddingConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        longest = _longest(config.max_length)
        self.sizes = Sizes((longest + 1,), 1, longest, source_frames=(2,))

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh sequences, those of a batch of about the same length."""
        low, high = self.config.min_length, self.config.max_length
        while True:
            share = float(torch.rand(1, generator=generator))
            yield self._batch(batch_size, round(low * (high / low) ** share), generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Four lengths at most, as many examples of each."""
        generator = self.seeded(split)
        return [self._batch(self.config.evaluate, length, generator) for length in self.lengths()]

    def lengths(self) -> list[int]:
        """T0 of each batch that is evaluated, from the shortest to the longest."""
        low, high = self.config.min_length, self.config.max_length
        return sorted({round(low * (high / low) ** (share / 3)) for share in range(4)})

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Success rate and squared error of all examples, and success by length."""
        found = [
            Scored(metric=SUCCESS.name, value=_success(answers)),
            Scored(metric=MEAN_SQUARED_ERROR.name, value=mean_squared_error(*numbers(answers))),
            *alignment_scores(answers, self.sizes.max_length),
        ]
        if len(answers) > 1:
            found += [
                Scored(metric=SUCCESS.name, value=_success([one]), axis="length", x=float(length))
                for one, length in zip(answers, self.lengths(), strict=True)
            ]
        return found

    def baselines(self) -> Mapping[str, float]:
        """The mean answer of the training part, whatever the sequence is."""
        drawn = next(self.training(4096, torch.Generator().manual_seed(self.seed)))
        assert drawn.values is not None, "targets are numbers"
        mean = drawn.values.mean()
        test = [batch.values for batch in self.evaluation("test") if batch.values is not None]
        return {"training mean": float(((torch.cat(test) - mean).abs() < NEAR).float().mean())}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples: the two numbers, the right answer, the prediction."""
        true, said = numbers(answers[:1])
        found = []
        for row in range(min(count, len(true))):
            frames = answers[0].batch.sources[0].frames
            assert frames is not None, "positions have numbers"
            marked = frames[row][frames[row, :, 1] == 1, 0].tolist()
            two = ", ".join(f"{number:.3f}" for number in marked)
            found.append(Sample(two, f"{true[row]:.3f}", f"{said[row]:.3f}"))
        return found

    def examples(self) -> Batch:
        """The first two examples of the test."""
        return self.evaluation("test")[0].first(2)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Numbers of positions."""
        return [str(number) for number in ids]

    def _batch(self, rows: int, length: int, generator: torch.Generator) -> Batch:
        """Draw lengths, numbers and markers."""
        width = _longest(length)
        lengths = torch.randint(length, width + 1, (rows, 1), generator=generator)
        values = torch.rand(rows, width, generator=generator)
        if self.config.operation == "add":
            values = 2 * values - 1
        first = torch.randint(1, FIRST_MARKER, (rows, 1), generator=generator)
        second = torch.randint(1, length // 2 - 1, (rows, 1), generator=generator)
        # the second one is drawn among the positions without the first
        second = second + (second >= first)
        markers = torch.zeros(rows, width)
        markers[:, 0] = -1
        markers.scatter_(1, lengths - 1, -1)
        gold = torch.zeros(rows, width).scatter_(1, torch.cat((first, second), 1), 0.5)
        mask = torch.arange(width) < lengths
        frames = torch.stack((values, markers + 2 * gold), -1) * mask.unsqueeze(-1)
        return Batch(
            sources=(Text(torch.arange(1, width + 1) * mask, mask, frames=frames),),
            inputs=torch.ones(rows, 1, dtype=torch.int64),
            targets=torch.zeros(rows, 1, dtype=torch.int64),
            mask=torch.ones(rows, 1, dtype=torch.bool),
            gold=gold.unsqueeze(1),
            values=self._answer(values.gather(1, first), values.gather(1, second)).unsqueeze(1),
        )

    def _answer(
        self, first: Float[Tensor, "B 1"], second: Float[Tensor, "B 1"]
    ) -> Float[Tensor, "B 1"]:
        if self.config.operation == "add":
            return 0.5 + (first + second) / 4
        return first * second


def _longest(length: int) -> int:
    """1.1 T0."""
    return length + length // 10


def _success(answers: Sequence[Answer]) -> float:
    """Share of answers that are near enough."""
    true, said = numbers(answers)
    return sum(abs(a - b) < NEAR for a, b in zip(true, said, strict=True)) / len(true)
