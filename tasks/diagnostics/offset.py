"""Repeat the token some positions back, for which attention needs position information.

y_t = x_{t-k} in one layer of causal self-attention. Content does not help, so the score measures
the position information, and lengths beyond training show which of them extrapolate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes
from bench.api.calibration import Setting
from bench.api.comparison import Entry, entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.string_baselines import COUNTED, most_frequent_answer
from tasks.diagnostics.diagnostic import ROSTER
from tasks.metrics.accuracy import SEQUENCE_ACCURACY, TOKEN_ACCURACY, scores_by_length
from tasks.modern import POSITIONS

FIRST = 4


@dataclass(frozen=True, kw_only=True)
class OffsetConfig(Config):
    """Options of the offset task."""

    back: Annotated[int, IntRange(1, 64)] = 3
    """Distance of the answer (tokens)."""
    vocab: Annotated[int, IntRange(2, 1000)] = 12
    """Symbols."""
    length: int = 24
    """Tokens in training."""
    beyond: int = 96
    """Longest sequence in the length curve (tokens)."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the lengths."""
        if not 1 <= self.back < self.length <= self.beyond:
            raise InvalidConfig(
                "offset: 1 <= back < length <= beyond, "
                f"got {self.back}, {self.length}, {self.beyond}."
            )
        if min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                f"offset: vocab and evaluate must be at least 1, "
                f"got {self.vocab} and {self.evaluate}."
            )


@register(
    "task",
    "offset",
    config=OffsetConfig,
    citation=Citation(
        text="Shaw et al., 2018", url="https://arxiv.org/abs/1803.02155", where="motivation"
    ),
)
class Offset(Task):
    """Each token is answered with the one `back` positions before it.

    >>> task = Offset(OffsetConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> int(batch.targets[0, 5]) == int(batch.inputs[0, 2])
    True
    """

    metrics = (TOKEN_ACCURACY, SEQUENCE_ACCURACY)
    needs_weights = False
    family = "diagnostics"
    comparison = (*ROSTER, Entry(variant="sinusoid"), Entry(variant="lstmn"))
    calibration = (Setting(options="offset"),)
    presets = {
        "smoke": TaskPreset(
            options="offset[length=8,beyond=16,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="offset[length=24,beyond=96]",
            backbone="transformer_decoder[width=64,layers=1]",
            protocol="adam[steps=500,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=4.0,
            seeds=3,
        ),
        "standard": TaskPreset(
            options="offset[length=24,beyond=192]",
            backbone="transformer_decoder[width=64,layers=1]",
            protocol="adam[steps=2000,batch=64,evaluate_every=200,stop_at=0.999]",
            seconds=60.0,
        ),
        "modern": TaskPreset(
            options="offset[length=24,beyond=96]",
            backbone="transformer_decoder[width=64,layers=1]",
            protocol="adam[lr=0.003,steps=400,batch=32,evaluate_every=50,stop_at=0.999]",
            seconds=5.0,
            comparison=entries(*POSITIONS),
        ),
    }
    ranks_tokens = True
    ceiling = 1.0

    def __init__(self, config: OffsetConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.sizes = Sizes((), FIRST + config.vocab, config.beyond)

    @classmethod
    def trained_to_of(cls, config: OffsetConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: OffsetConfig) -> float:
        """Any one symbol."""
        return 1 / config.vocab

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh sequences of the training length."""
        while True:
            yield self._batch(batch_size, self.config.length, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation at the training length; test at three lengths more."""
        config = self.config
        generator = self.seeded(split)
        lengths = [config.length]
        if split == "test":
            middle = (config.length + config.beyond) // 2
            short = max(config.back + 1, config.length // 2)
            lengths = sorted({short, config.length, middle, config.beyond})
        return [self._batch(config.evaluate, length, generator) for length in lengths]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy at the training length, and a curve over lengths."""
        exact = self.config.length
        plain = [a for a in answers if a.batch.inputs.shape[1] == exact]
        found = scores_by_length(plain, exact, curve=False)
        if len(answers) > 1:
            found += [scored for scored in scores_by_length(answers, -1) if scored.axis]
        return found

    def baselines(self) -> Mapping[str, float]:
        """The token that is most frequent in training, and the input token itself."""
        train = self._batch(COUNTED, self.config.length, self.seeded(4))
        lengths = [batch.inputs.shape[1] for batch in self.evaluation("test")]
        test = self.evaluation("test")[lengths.index(self.config.length)]
        copied = (test.targets == test.inputs)[test.mask]
        return {
            "most frequent answer": most_frequent_answer(train, test),
            "copy the input": float(copied.double().mean()),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples."""
        batch, predicted = answers[0].batch, answers[0].predicted
        assert predicted is not None
        found = []
        for row in range(min(count, len(predicted))):
            shown = (batch.inputs[row], batch.targets[row], predicted[row])
            found.append(Sample(*(" ".join(self.tokens(x.tolist(), source=True)) for x in shown)))
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Letters; a dot where nothing is scored."""
        return ["·" if number < FIRST else chr(ord("a") + number - FIRST) for number in ids]

    def _batch(self, rows: int, length: int, generator: torch.Generator) -> Batch:
        shape = (rows, length)
        words = torch.randint(FIRST, FIRST + self.config.vocab, shape, generator=generator)
        targets = torch.zeros_like(words)
        targets[:, self.config.back :] = words[:, : -self.config.back]
        return Batch(sources=(), inputs=words, targets=targets, mask=targets > 0)
