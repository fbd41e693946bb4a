"""Multi-query associative recall: look up the values of keys seen earlier.

Arora et al., 2023, "Zoology: measuring and improving recall in efficient language models",
https://arxiv.org/abs/2312.04927, section 3.

Deviations: queries are at uniformly random positions, not at positions drawn from a power law.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch, Sizes
from bench.api.calibration import Setting
from bench.api.comparison import entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import beyond_training
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, Task, TaskPreset
from tasks.data.string_baselines import COUNTED, most_frequent_answer
from tasks.diagnostics.diagnostic import COPYING, ROSTER
from tasks.metrics.accuracy import SEQUENCE_ACCURACY, TOKEN_ACCURACY, scores_by_length
from tasks.modern import CACHES, LAYERS, RECURRENCES, STATE_SIZES

FILLER, FIRST = 3, 4


@dataclass(frozen=True, kw_only=True)
class RecallConfig(Config):
    """Options of associative recall."""

    pairs: Annotated[int, IntRange(1, 256, log=True)] = 4
    """Key-value pairs to remember in training."""
    vocab: Annotated[int, IntRange(4, 8192, log=True)] = 32
    """Symbols; one half are keys, the other half values."""
    gap: int = 2
    """Positions of the second half per pair; one of them is a query."""
    more_pairs: int = 8
    """Largest number of pairs in the test."""
    evaluate: int = 256
    """Examples of validation, and of each difficulty of the test.

    Validation also has half as many of each number of pairs beyond training."""

    def __post_init__(self) -> None:
        """Check that there are enough keys and positions to ask for them."""
        if not 1 <= self.pairs < self.more_pairs <= self.vocab // 2:
            raise InvalidConfig(
                "recall: 1 <= pairs < more_pairs <= vocab/2, "
                f"got {self.pairs}, {self.more_pairs}, {self.vocab}."
            )
        if min(self.gap, self.evaluate) < 1:
            raise InvalidConfig(
                f"recall: gap and evaluate must be at least 1, got {self.gap}, {self.evaluate}."
            )


@register(
    "task",
    "recall",
    config=RecallConfig,
    citation=Citation(
        text="Arora et al., 2023", url="https://arxiv.org/abs/2312.04927", where="section 3"
    ),
)
class Recall(Task):
    """Pairs first, then keys in random order among fillers; each key is a query for its value.

    >>> task = Recall(RecallConfig(pairs=1, evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> key, value, *rest = batch.inputs[0].tolist()
    >>> at = rest.index(key) + 2
    >>> int(batch.targets[0, at]) == value, bool(batch.mask[0, at])
    (True, True)
    """

    metrics = (TOKEN_ACCURACY, SEQUENCE_ACCURACY)
    headline = beyond_training(TOKEN_ACCURACY)
    capabilities = frozenset()
    needs_weights = False
    family = "diagnostics"
    comparison = (*ROSTER, *COPYING)
    calibration = (
        Setting(
            options="recall[pairs=6,more_pairs=24,vocab=48]",
            protocol="adam[cooldown=0.5,steps=400]",
            given=(
                "The baseline solves the task at every size that it learns, and the question is "
                "what else does, so that no size has it in the middle of the range."
            ),
        ),
    )
    presets = {
        "smoke": TaskPreset(
            options="recall[pairs=2,more_pairs=4,vocab=16,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="recall[pairs=4,more_pairs=8,vocab=32]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=2.0,
            shared=True,
            seeds=4,
        ),
        "standard": TaskPreset(
            options="recall[pairs=16,more_pairs=32,vocab=128]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=3]",
            protocol="adam[steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=150.0,
            shared=True,
        ),
        "modern": TaskPreset(
            options="recall[pairs=16,more_pairs=32,vocab=128,evaluate=128]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=3]",
            protocol="adam[lr=0.003,steps=600,batch=32,evaluate_every=50,stop_at=0.999]",
            seconds=20.0,
            comparison=entries(*RECURRENCES, *STATE_SIZES, *LAYERS, *CACHES),
        ),
    }
    ranks_tokens = True
    ceiling = 1.0

    def __init__(self, config: RecallConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.trained_to = self.trained_to_of(config)
        self.sizes = Sizes((), FIRST + config.vocab, self._length(config.more_pairs))

    @classmethod
    def trained_to_of(cls, config: RecallConfig) -> float:
        """The length of training."""
        return float((2 + config.gap) * config.pairs)

    @classmethod
    def chance_of(cls, config: RecallConfig) -> float:
        """Any one value; the other half of the symbols are keys."""
        return 1 / (config.vocab // 2)

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh sequences."""
        while True:
            yield self._batch(batch_size, self.config.pairs, generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Validation as in training and with more pairs; test with fewer pairs too."""
        config = self.config
        generator = self.seeded(split)
        middle = (config.pairs + config.more_pairs) // 2
        beyond = sorted({middle, config.more_pairs} - {config.pairs})
        if split == "test":
            counts = [*sorted({max(1, config.pairs // 2), config.pairs}), *beyond]
            return [self._batch(config.evaluate, count, generator) for count in counts]
        rows = max(1, config.evaluate // 2)
        return [
            self._batch(config.evaluate, config.pairs, generator),
            *(self._batch(rows, count, generator) for count in beyond),
        ]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy at the training difficulty, and a curve over sequence lengths."""
        exact = self._length(self.config.pairs)
        plain = [a for a in answers if a.batch.inputs.shape[1] == exact]
        found = scores_by_length(plain, exact, curve=False)
        if len(answers) > 1:
            curve = scores_by_length(answers, -1)
            found += [scored for scored in curve if scored.axis]
        return found

    def baselines(self) -> Mapping[str, float]:
        """The value that is most frequent in training, and the first value, beyond training."""
        train = self._batch(COUNTED, self.config.pairs, self.seeded(4))
        trained = self._length(self.config.pairs)
        beyond = [one for one in self.evaluation("test") if one.inputs.shape[1] > trained]
        first = [(one.targets == one.inputs[:, 1:2])[one.mask] for one in beyond]
        return {
            "most frequent answer": fmean(most_frequent_answer(train, one) for one in beyond),
            "first value read": fmean(float(right.double().mean()) for right in first),
        }

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples: the sequence, the right values, the predictions."""
        batch, predicted = answers[0].batch, answers[0].predicted
        assert predicted is not None
        found = []
        for row in range(min(count, len(predicted))):
            mask = batch.mask[row]
            shown = (batch.inputs[row], batch.targets[row][mask], predicted[row][mask])
            found.append(Sample(*(" ".join(self.tokens(x.tolist(), source=True)) for x in shown)))
        return found

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Keys as k, values as v, fillers as a dot."""
        half = self.config.vocab // 2
        names = []
        for number in ids:
            index = number - FIRST
            letter = f"k{index}" if index < half else f"v{index - half}"
            names.append("·" if number < FIRST else letter)
        return names

    def _length(self, pairs: int) -> int:
        return (2 + self.config.gap) * pairs

    def _batch(self, rows: int, pairs: int, generator: torch.Generator) -> Batch:
        half = self.config.vocab // 2
        keys = torch.rand(rows, half, generator=generator).argsort(1)[:, :pairs] + FIRST
        values = torch.randint(FIRST + half, FIRST + 2 * half, (rows, pairs), generator=generator)
        length = self._length(pairs)
        inputs = torch.full((rows, length), FILLER)
        inputs[:, 0 : 2 * pairs : 2] = keys
        inputs[:, 1 : 2 * pairs : 2] = values
        room = length - 2 * pairs
        place = torch.rand(rows, room, generator=generator).argsort(1)[:, :pairs] + 2 * pairs
        inputs.scatter_(1, place, keys)
        targets = torch.zeros_like(inputs).scatter_(1, place, values)
        mask = torch.zeros(rows, length, dtype=torch.bool).scatter_(1, place, True)
        return Batch(sources=(), inputs=inputs, targets=targets, mask=mask)
