"""Name the token after a marker: scores of content alone cannot find it.

The source sentence that motivates it is "we might want to attend to the word after Mr."
(Allamanis et al., 2016, https://arxiv.org/abs/1602.03001). States are bare embeddings, so the key
of the answer does not know its neighbor; only a mechanism that sees neighboring keys can find it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes, Text
from bench.api.calibration import Setting
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.string_baselines import COUNTED, most_frequent_answer
from tasks.metrics.accuracy import TOKEN_ACCURACY
from tasks.metrics.attention_scores import (
    ALIGNMENT_ENTROPY,
    ALIGNMENT_MATCH,
    alignment_scores,
    selection_scores,
)

MARKER, FIRST = 4, 5


@dataclass(frozen=True, kw_only=True)
class AfterMarkerConfig(Config):
    """Options of the marker task."""

    length: Annotated[int, IntRange(4, 512, log=True)] = 16
    """Tokens in training."""
    vocab: Annotated[int, IntRange(2, 1000)] = 20
    """Symbols besides the marker."""
    beyond: int = 32
    """Longest sequence in the length curve (tokens)."""
    evaluate: int = 512
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the lengths."""
        if not 2 <= self.length <= self.beyond:
            raise InvalidConfig(
                f"after_marker: 2 <= length <= beyond, got {self.length} and {self.beyond}."
            )
        if min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                f"after_marker: vocab and evaluate must be at least 1, "
                f"got {self.vocab} and {self.evaluate}."
            )


@register(
    "task",
    "after_marker",
    config=AfterMarkerConfig,
    citation=Citation(text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001"),
)
class AfterMarker(Task):
    """Random symbols, one marker; the answer is the symbol after it.

    >>> task = AfterMarker(AfterMarkerConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> row = batch.sources[0].tokens[0].tolist()
    >>> row[row.index(4) + 1] == int(batch.targets[0, 0])
    True
    """

    metrics = (TOKEN_ACCURACY, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)
    headline = area_under_curve(TOKEN_ACCURACY)
    family = "diagnostics"
    comparison = tuple(
        Entry(variant=name)
        for name in ("additive", "general", "conv_attention", "context_vector", "max_pooling")
    )
    capabilities = frozenset({"gold_alignment", "source_tokens"})
    calibration = (
        Setting(options="after_marker", protocol="adam[evaluate_every=25]"),
        Setting(options="after_marker[length=24,beyond=48]", protocol="adam[evaluate_every=25]"),
    )
    presets = {
        "smoke": TaskPreset(
            options="after_marker[length=8,beyond=12,evaluate=64]",
            backbone="pooling[embedding=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="after_marker[length=16,beyond=32]",
            backbone="pooling[embedding=32]",
            protocol="adam[steps=500,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=1.0,
        ),
        "standard": TaskPreset(
            options="after_marker[length=32,beyond=64]",
            backbone="pooling[embedding=64]",
            protocol="adam[steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=30.0,
        ),
    }
    ranks_tokens = True
    ceiling = 1.0

    def __init__(self, config: AfterMarkerConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        words = FIRST + config.vocab
        self.sizes = Sizes((words,), words, config.beyond)

    @classmethod
    def trained_to_of(cls, config: AfterMarkerConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: AfterMarkerConfig) -> float:
        """Any one symbol."""
        return 1 / config.vocab

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh sequences of the training length."""
        while True:
            yield self._batch(batch_size, self.config.length, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation at the training length; test at four lengths."""
        config = self.config
        generator = self.seeded(split)
        lengths = [config.length]
        if split == "test":
            middle = (config.length + config.beyond) // 2
            lengths = sorted({max(2, config.length // 2), config.length, middle, config.beyond})
        return [self._batch(config.evaluate, length, generator) for length in lengths]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy at the training length, and a curve over lengths."""
        found = []
        for answer in answers:
            assert answer.predicted is not None, "teacher-forced predictions are needed"
            length = answer.batch.sources[0].tokens.shape[1]
            value = float((answer.predicted == answer.batch.targets).float().mean())
            if length == self.config.length:
                found.append(Scored(metric=TOKEN_ACCURACY.name, value=value))
                found += alignment_scores([answer], length)
                found += selection_scores([answer], length)
            if len(answers) > 1:
                found.append(
                    Scored(metric=TOKEN_ACCURACY.name, value=value, axis="length", x=float(length))
                )
        return found

    def baselines(self) -> Mapping[str, float]:
        """The most frequent symbol of training, and the most frequent symbol of the text itself.

        The second is the best guess without positions.
        """
        train = self._batch(COUNTED, self.config.length, self.seeded(4))
        lengths = [batch.sources[0].tokens.shape[1] for batch in self.evaluation("test")]
        test = self.evaluation("test")[lengths.index(self.config.length)]
        counts = torch.nn.functional.one_hot(test.sources[0].tokens).sum(1)
        counts[:, :FIRST] = 0
        return {
            "most frequent answer": most_frequent_answer(train, test),
            "most frequent symbol of the text": float(
                (counts.argmax(1, keepdim=True) == test.targets).double().mean()
            ),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples."""
        batch, predicted = answers[0].batch, answers[0].predicted
        assert predicted is not None
        return [
            Sample(
                " ".join(self.tokens(batch.sources[0].tokens[row].tolist(), source=True)),
                *self.tokens([int(batch.targets[row, 0]), int(predicted[row, 0])], source=False),
            )
            for row in range(min(count, len(predicted)))
        ]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Letters, and a name for the marker."""
        return ["Mr." if number == MARKER else f"w{number - FIRST}" for number in ids]

    def _batch(self, rows: int, length: int, generator: torch.Generator) -> Batch:
        words = torch.randint(FIRST, FIRST + self.config.vocab, (rows, length), generator=generator)
        place = torch.randint(0, length - 1, (rows, 1), generator=generator)
        words.scatter_(1, place, MARKER)
        gold = torch.nn.functional.one_hot(place + 1, length).float()
        return Batch(
            sources=(Text(words, None),),
            inputs=torch.ones(rows, 1, dtype=torch.int64),
            targets=words.gather(1, place + 1),
            mask=torch.ones(rows, 1, dtype=torch.bool),
            extended=words,
            gold=gold,
        )
