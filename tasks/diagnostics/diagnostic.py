"""Generated diagnostics: levels of length or difficulty, inside and beyond training.

Training draws a level for each batch; validation and the plain scores are of the hardest level of
training, and the test has easier ones and harder ones too, as a curve. Where harder levels rank,
validation has all levels of the test.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Literal

import torch

from bench.api.answer import Answer, Sample
from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.config import Config
from bench.api.metric import Scored
from bench.api.task import Split, Task
from tasks.data.string_baselines import COUNTED, most_frequent_answer
from tasks.metrics.accuracy import SEQUENCE_ACCURACY, TOKEN_ACCURACY, scores_by_length

PAD, BOS, EOS = 0, 1, 2
FIRST = 4
"""Ids below it are special (3 is UNK)."""
ROSTER = tuple(
    Entry(variant=name)
    for name in ("additive", "general", "linear_attention", "shaw_rpr", "last_state")
)
"""Comparison of every decoder-only diagnostic, so that their ranks are comparable.

With `last_state` every token reads only itself: a decoder without attention.
"""
COPYING = (Entry(variant="pointer_sentinel"), Entry(variant="neural_cache"))
"""Outputs that copy input tokens, for tasks whose answers are among them."""
BESIDE_A_SOURCE = tuple(
    Entry(variant=name)
    for name in (
        "additive",
        "general",
        "linear_attention",
        "location_aware",
        "none_state",
        "pointer_net",
    )
)
"""Comparison of the diagnostics with a recurrent encoder-decoder.

Their answers are words of the source, the only words that a pointer network can output.
"""


def marked_symbols(ids: Sequence[int]) -> list[str]:
    """Words for a task whose first id is a mark and whose others are symbols: numbers, and signs.

    >>> marked_symbols([FIRST + 1, FIRST, PAD])
    ['w0', '▶', '·']
    """
    names = {FIRST: "▶"}
    return [names.get(n, f"w{n - FIRST - 1}" if n > FIRST else "·") for n in ids]


class Diagnostic(Task):
    """Base: a subclass draws a batch of one level."""

    family = "diagnostics"
    metrics = (TOKEN_ACCURACY, SEQUENCE_ACCURACY)
    axis: ClassVar[Literal["length", "difficulty"]] = "length"
    needs_weights = False
    ranks_tokens = True
    ceiling = 1.0
    evaluate: int
    """Examples of validation, and of each level of the test."""

    def __init__(self, config: Config, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)

    def start(self, trained: Sequence[int], tested: Sequence[int], evaluate: int) -> None:
        """Set the levels of training and the further levels of the test."""
        self.trained = tuple(sorted(trained))
        self.inside = self.trained[-1]
        self.trained_to = float(self.inside)
        self.tested = tuple(sorted({self.inside, *tested}))
        self.evaluate = evaluate

    @abstractmethod
    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Some examples of one level."""

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh examples; every batch has one level."""
        while True:
            place = int(torch.randint(0, len(self.trained), (), generator=generator))
            yield self.draw(batch_size, self.trained[place], generator)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Test at all levels; validation at the hardest one of training, or at all that rank."""
        generator = self.seeded(split)
        return [self.draw(self.evaluate, level, generator) for level in self._levels(split)]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy at the hardest level of training, and a curve over levels."""
        found = []
        for level, answer in zip(self._levels(split), answers, strict=True):
            scores = scores_by_length([answer], 2**40, curve=False)
            if level == self.inside:
                found += scores
            if split == "test" or len(answers) > 1:
                found += [
                    Scored(metric=s.metric, value=s.value, axis=self.axis, x=float(level))
                    for s in scores
                ]
        return found

    def baselines(self) -> Mapping[str, float]:
        """The answer that is most frequent in training, on the levels that rank."""
        train = self.draw(COUNTED, self.inside, torch.Generator().manual_seed(self.seed))
        beyond = [level > self.inside for level in self.tested]
        ranks = beyond if self._beyond else [level == self.inside for level in self.tested]
        tests = compress(self.evaluation("test"), ranks)
        return {"most frequent answer": fmean(most_frequent_answer(train, one) for one in tests)}

    def samples(self, answers: Sequence[Answer], count: int) -> list[Sample]:
        """First examples: input, right answers, predictions."""
        batch, predicted = answers[0].batch, answers[0].predicted
        if predicted is None:
            return []
        read = batch.sources[0].tokens if batch.sources else batch.inputs
        found = []
        for row in range(min(count, len(predicted))):
            mask = batch.mask[row]
            shown = (batch.targets[row][mask], predicted[row][mask])
            found.append(
                Sample(
                    " ".join(self.tokens(read[row].tolist(), source=True)),
                    *(" ".join(self.tokens(x.tolist(), source=False)) for x in shown),
                )
            )
        return found

    def examples(self) -> Batch:
        """The first examples of the test at the hardest level of training."""
        rows = torch.arange(min(2, self.evaluate))
        return self.evaluation("test")[self.tested.index(self.inside)].select(rows)

    @property
    def _beyond(self) -> bool:
        """Whether what ranks is about levels beyond those of training."""
        return self.headline is not None and self.headline.kind == "beyond_training"

    def _levels(self, split: Split) -> tuple[int, ...]:
        return self.tested if split == "test" or self._beyond else (self.inside,)
