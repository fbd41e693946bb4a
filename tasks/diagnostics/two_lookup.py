"""Two lookups in a row: the first table gives a place, and the second has the answer for it.

Press et al., 2023, "Measuring and narrowing the compositionality gap in language models",
https://arxiv.org/abs/2210.03350, is about questions of this form. One attention step cannot answer;
it takes two layers, or two hops. A quick run is too short for most mechanisms to learn it.

Deviations: symbols instead of facts in words. Training has questions that one lookup answers, too;
they are not scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.diagnostics.diagnostic import COPYING, FIRST, ROSTER, Diagnostic


@dataclass(frozen=True, kw_only=True)
class TwoLookupConfig(Config):
    """Options of two lookups."""

    pairs: Annotated[int, IntRange(1, 64, log=True)] = 3
    """Pairs of each table in training."""
    more_pairs: int = 6
    """Largest number of pairs in the test."""
    vocab: int = 8
    """Symbols of each of the three kinds: questions, places, answers."""
    evaluate: int = 128
    """Examples of validation, and of each difficulty of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 1 <= self.pairs <= self.more_pairs <= self.vocab or self.evaluate < 1:
            raise InvalidConfig(
                "two_lookup: 1 <= pairs <= more_pairs <= vocab and evaluate >= 1, got "
                f"{self.pairs}, {self.more_pairs}, {self.vocab}, {self.evaluate}."
            )


@register(
    "task",
    "two_lookup",
    config=TwoLookupConfig,
    citation=Citation(text="Press et al., 2023", url="https://arxiv.org/abs/2210.03350"),
)
class TwoLookup(Diagnostic):
    """Pairs (question, place), pairs (place, answer), then places, then questions.

    >>> task = TwoLookup(TwoLookupConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> row = batch.inputs[0].tolist()
    >>> place = row[row.index(row[-1]) + 1]
    >>> row[row.index(place, 6) + 1] == int(batch.targets[0, -1])
    True
    """

    axis = "difficulty"
    comparison = (*ROSTER, *COPYING)
    pipeline_check = (
        "When it was marked, at the quick size the seeds of every network overlapped with those "
        "of uniform attention."
    )
    presets = {
        "smoke": TaskPreset(
            options="two_lookup[pairs=2,more_pairs=3,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=2,short_convolution=3]",
            protocol="adam[steps=15,batch=16,evaluate_every=5]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="two_lookup",
            backbone="transformer_decoder[width=32,layers=2,short_convolution=3]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=3.2,
        ),
        "standard": TaskPreset(
            options="two_lookup[pairs=8,more_pairs=16,vocab=32]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=3]",
            protocol="adam[lr=0.003,steps=5000,batch=64,evaluate_every=500,stop_at=0.995]",
            seconds=240.0,
        ),
    }

    def __init__(self, config: TwoLookupConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.pairs + config.more_pairs) // 2
        less = max(1, config.pairs - 1)
        self.start([config.pairs], [less, middle, config.more_pairs], config.evaluate)
        self.sizes = Sizes((), FIRST + 3 * config.vocab, 6 * config.more_pairs)

    @classmethod
    def chance_of(cls, config: TwoLookupConfig) -> float:
        """Any one answer."""
        return 1 / config.vocab

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Both tables in orders of their own."""

        def some(count: int) -> torch.Tensor:
            return torch.rand(rows, count, generator=generator).argsort(1)[:, :level]

        vocab = self.config.vocab
        asked, places = some(vocab) + FIRST, some(vocab) + FIRST + vocab
        answers = torch.randint(0, vocab, (rows, level), generator=generator) + FIRST + 2 * vocab
        order, direct, questions = some(level), some(level), some(level)
        first = torch.stack((asked, places), -1).flatten(1)
        second = torch.stack((places.gather(1, order), answers.gather(1, order)), -1).flatten(1)
        asks = torch.cat((places.gather(1, direct), asked.gather(1, questions)), 1)
        inputs = torch.cat((first, second, asks), 1)
        targets = torch.zeros_like(inputs)
        targets[:, 4 * level :] = answers.gather(1, torch.cat((direct, questions), 1))
        return Batch(sources=(), inputs=inputs, targets=targets, mask=targets > 0)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """The same levels; only what takes two lookups is scored."""
        return [
            replace(batch, mask=batch.mask & (batch.inputs < FIRST + self.config.vocab))
            for batch in super().evaluation(split)
        ]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Questions as q, places as p, answers as a."""
        vocab = self.config.vocab
        found = []
        for number in ids:
            kind, index = divmod(number - FIRST, vocab)
            found.append("·" if number < FIRST else f"{'qpa'[kind]}{index}")
        return found
