"""Induction: a block of symbols is repeated, and each symbol is answered with the one after it.

Olsson et al., 2022, "In-context learning and induction heads", https://arxiv.org/abs/2209.11895,
section on the argument from repeated random tokens.

Deviations: each example has a period of its own, drawn between a fourth and a half of the length;
with one period for all, a fixed distance would be enough, whatever the symbols. Symbols of a block
differ from each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.calibration import Setting
from bench.api.comparison import entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import COPYING, FIRST, ROSTER, Diagnostic
from tasks.metrics.accuracy import TOKEN_ACCURACY
from tasks.modern import POSITIONS


@dataclass(frozen=True, kw_only=True)
class InductionConfig(Config):
    """Options of induction."""

    length: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Tokens in training."""
    beyond: int = 64
    """Longest sequence of the test (tokens)."""
    vocab: int = 32
    """Symbols; at least half of `beyond`, for those of a block differ."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 8 <= self.length <= self.beyond <= 2 * self.vocab or self.evaluate < 1:
            raise InvalidConfig(
                "induction: 8 <= length <= beyond <= 2 * vocab and evaluate >= 1, got "
                f"{self.length}, {self.beyond}, {self.vocab}, {self.evaluate}."
            )


@register(
    "task",
    "induction",
    config=InductionConfig,
    citation=Citation(text="Olsson et al., 2022", url="https://arxiv.org/abs/2209.11895"),
)
class Induction(Diagnostic):
    """A block of distinct symbols, repeated; scored from the second time on.

    >>> task = Induction(InductionConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> row, at = batch.inputs[0].tolist(), batch.mask[0].tolist().index(True)
    >>> row[row.index(row[at]) + 1] == int(batch.targets[0, at])
    True
    """

    headline = area_under_curve(TOKEN_ACCURACY)
    comparison = (*ROSTER, *COPYING)
    calibration = (Setting(options="induction", protocol="adam[evaluate_every=25]"),)
    presets = {
        "smoke": TaskPreset(
            options="induction[length=12,beyond=16,evaluate=16]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="induction",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=1.5,
        ),
        "standard": TaskPreset(
            options="induction[length=64,beyond=128,vocab=64]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=180.0,
        ),
        "modern": TaskPreset(
            options="induction[length=32,beyond=128,vocab=64]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=600,batch=32,evaluate_every=50,stop_at=0.999]",
            seconds=12.0,
            comparison=entries(*POSITIONS, "gated_deltanet", "mamba2_ssd"),
        ),
    }

    def __init__(self, config: InductionConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        half = max(8, config.length // 2)
        self.start([config.length], [half, middle, config.beyond], config.evaluate)
        self.sizes = Sizes((), FIRST + config.vocab, config.beyond)

    @classmethod
    def trained_to_of(cls, config: InductionConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: InductionConfig) -> float:
        """Any one symbol."""
        return 1 / config.vocab

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Blocks repeated up to a length."""
        vocab, most = self.config.vocab, level // 2
        block = torch.rand(rows, vocab, generator=generator).argsort(1)[:, :most] + FIRST
        period = torch.randint(level // 4, most + 1, (rows, 1), generator=generator)
        whole = block.gather(1, torch.arange(level + 1) % period)
        mask = torch.arange(level) >= period
        return Batch(sources=(), inputs=whole[:, :-1], targets=whole[:, 1:] * mask, mask=mask)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols by number."""
        return [f"w{number - FIRST}" if number >= FIRST else "·" for number in ids]
