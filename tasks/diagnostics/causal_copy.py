"""Copying without an encoder: a string, a mark, and the string again.

Jelassi, Brandfonbrener, Kakade and Malach, 2024, "Repeat after me: transformers are better than
state space models at copying", https://arxiv.org/abs/2402.01032, section 3.

Deviations: no token ends the copy, whose length is that of the string; all strings of a batch have
one length; scored under teacher forcing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import beyond_training
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import COPYING, FIRST, ROSTER, Diagnostic, marked_symbols
from tasks.metrics.accuracy import TOKEN_ACCURACY
from tasks.modern import COPIERS

MARK, SYMBOLS = FIRST, FIRST + 1


@dataclass(frozen=True, kw_only=True)
class CausalCopyConfig(Config):
    """Options of copying without an encoder."""

    shortest: int = 8
    """Shortest string of training (symbols)."""
    length: Annotated[int, IntRange(2, 512, log=True)] = 32
    """Longest string of training (symbols)."""
    beyond: int = 128
    """Longest string of the test (symbols)."""
    vocab: Annotated[int, IntRange(2, 1000)] = 26
    """Symbols besides the mark."""
    evaluate: int = 64
    """Examples of each length of validation and test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 1 <= self.shortest <= self.length < self.beyond:
            raise InvalidConfig(
                "causal_copy: 1 <= shortest <= length < beyond, got "
                f"{self.shortest}, {self.length}, {self.beyond}."
            )
        if min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                f"causal_copy: vocab and evaluate must be at least 1, got {self.vocab}, "
                f"{self.evaluate}."
            )


@register(
    "task",
    "causal_copy",
    config=CausalCopyConfig,
    title="Copying without an encoder",
    citation=Citation(
        text="Jelassi et al., 2024", url="https://arxiv.org/abs/2402.01032", where="section 3"
    ),
)
class CausalCopy(Diagnostic):
    """Random symbols, a mark, and the same symbols, which are scored.

    >>> task = CausalCopy(CausalCopyConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("test")[0]
    >>> batch.targets[batch.mask].tolist() == batch.inputs[0].tolist()[:16]
    True
    """

    headline = beyond_training(TOKEN_ACCURACY)
    comparison = (*ROSTER, *COPYING)
    presets = {
        "smoke": TaskPreset(
            options="causal_copy[shortest=4,length=8,beyond=16,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="causal_copy[length=16,beyond=48]",
            backbone="transformer_decoder[width=32,layers=2,short_convolution=3]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=9.0,
        ),
        "standard": TaskPreset(
            options="causal_copy",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=3]",
            protocol="adam[lr=0.003,steps=4000,batch=32,evaluate_every=400,stop_at=0.995]",
            seconds=240.0,
        ),
        "modern": TaskPreset(
            options="causal_copy[evaluate=32]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=3]",
            protocol="adam[lr=0.003,steps=600,batch=16,evaluate_every=200,stop_at=0.99]",
            seconds=16.0,
            comparison=entries(*COPIERS),
        ),
    }

    def __init__(self, config: CausalCopyConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        half = max(config.shortest, config.length // 2)
        middle = (config.length + config.beyond) // 2
        trained = range(config.shortest, config.length + 1)
        self.start(trained, [half, middle, config.beyond], config.evaluate)
        self.sizes = Sizes((), SYMBOLS + config.vocab, 2 * config.beyond)

    @classmethod
    def trained_to_of(cls, config: CausalCopyConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: CausalCopyConfig) -> float:
        """Any one symbol."""
        return 1 / config.vocab

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Uniform symbols, which may come again."""
        last = SYMBOLS + self.config.vocab
        string = torch.randint(SYMBOLS, last, (rows, level), generator=generator)
        mark = torch.full((rows, 1), MARK)
        targets = torch.cat((torch.zeros_like(string), string), 1)
        inputs = torch.cat((string, mark, string[:, :-1]), 1)
        return Batch(sources=(), inputs=inputs, targets=targets, mask=targets > 0)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols by number, and a sign for the mark."""
        return marked_symbols(ids)
