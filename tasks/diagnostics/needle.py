"""A needle in a haystack: one marked symbol far back among similar symbols.

Kamradt, 2023, https://github.com/gkamradt/LLMTest_NeedleInAHaystack.

Deviations: symbols instead of sentences, so that it can be learned from scratch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.calibration import Setting
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import COPYING, FIRST, ROSTER, Diagnostic, marked_symbols
from tasks.metrics.accuracy import TOKEN_ACCURACY

MARK, SYMBOLS = FIRST, FIRST + 1


@dataclass(frozen=True, kw_only=True)
class NeedleConfig(Config):
    """Options of the needle."""

    length: Annotated[int, IntRange(4, 4096, log=True)] = 32
    """Tokens in training."""
    beyond: int = 128
    """Longest sequence of the test (tokens)."""
    vocab: Annotated[int, IntRange(2, 1000)] = 16
    """Symbols besides the mark."""
    evaluate: int = 256
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 4 <= self.length <= self.beyond or min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                "needle: 4 <= length <= beyond, vocab and evaluate at least 1, got "
                f"{self.length}, {self.beyond}, {self.vocab}, {self.evaluate}."
            )


@register(
    "task",
    "needle",
    config=NeedleConfig,
    citation=Citation(
        text="Kamradt, 2023", url="https://github.com/gkamradt/LLMTest_NeedleInAHaystack"
    ),
)
class Needle(Diagnostic):
    """Random symbols, a mark before one of them; the mark at the end is the query for that symbol.

    >>> task = Needle(NeedleConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> row = batch.inputs[0].tolist()
    >>> row[row.index(4) + 1] == int(batch.targets[0, -1])
    True
    """

    headline = area_under_curve(TOKEN_ACCURACY)
    comparison = (*ROSTER, *COPYING)
    calibration = (
        Setting(options="needle", protocol="adam[evaluate_every=25]"),
        Setting(options="needle[length=64,beyond=128]", protocol="adam[evaluate_every=25]"),
    )
    presets = {
        "smoke": TaskPreset(
            options="needle[length=8,beyond=16,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="needle",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=0.9,
        ),
        "standard": TaskPreset(
            options="needle[length=256,beyond=1024]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=3]",
            protocol="adam[lr=0.003,steps=1000,batch=16,evaluate_every=100,stop_at=0.995]",
            seconds=180.0,
        ),
    }

    def __init__(self, config: NeedleConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        twice = min(2 * config.length, config.beyond)
        half = max(4, config.length // 2)
        self.start([config.length], [half, twice, config.beyond], config.evaluate)
        self.sizes = Sizes((), SYMBOLS + config.vocab, config.beyond)

    @classmethod
    def trained_to_of(cls, config: NeedleConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: NeedleConfig) -> float:
        """Any one symbol."""
        return 1 / config.vocab

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """One needle a row, anywhere."""
        last = SYMBOLS + self.config.vocab
        inputs = torch.randint(SYMBOLS, last, (rows, level), generator=generator)
        place = torch.randint(0, level - 2, (rows, 1), generator=generator)
        inputs.scatter_(1, place, MARK)
        inputs[:, -1] = MARK
        targets = torch.zeros_like(inputs)
        targets[:, -1:] = inputs.gather(1, place + 1)
        return Batch(sources=(), inputs=inputs, targets=targets, mask=targets > 0)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols by number, and a sign for the mark."""
        return marked_symbols(ids)
