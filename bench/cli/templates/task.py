"""Say in one sentence what is asked; here each token is answered with the one before it.

No paper yet: authors, year, title, URL and section stand here, and where this task differs.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import FIRST, Diagnostic


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    vocab: Annotated[int, IntRange(2, 1000)] = 12
    """Symbols."""
    length: Annotated[int, IntRange(4, 512, log=True)] = 16
    """Tokens in training."""
    beyond: int = 32
    """Longest sequence of the test (tokens)."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 2 <= self.length <= self.beyond or min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                "new_name: 2 <= length <= beyond, vocab and evaluate >= 1, got "
                f"{self.length}, {self.beyond}, {self.vocab}, {self.evaluate}."
            )


@register("task", "new_name", title="The name that tables print", config=NewNameConfig)
class NewNameTask(Diagnostic):
    """Random symbols; each place is answered with the symbol before it.

    >>> task = NewNameTask(NewNameConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> int(batch.targets[0, 5]) == int(batch.inputs[0, 4])
    True
    """

    family = "new_use"
    comparison = (Entry(variant="additive"), Entry(variant="shaw_rpr"))
    presets = {
        "smoke": TaskPreset(
            options="new_name[length=8,beyond=12,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="new_name",
            backbone="transformer_decoder[width=64,layers=1]",
            protocol="adam[steps=500,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=4.0,
        ),
        "standard": TaskPreset(
            options="new_name[length=32,beyond=128]",
            backbone="transformer_decoder[width=64,layers=1]",
            protocol="adam[steps=2000,batch=64,evaluate_every=200,stop_at=0.995]",
            seconds=60.0,
        ),
    }

    def __init__(self, config: NewNameConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        self.start([config.length], [middle, config.beyond], config.evaluate)
        self.sizes = Sizes((), FIRST + config.vocab, config.beyond)

    @classmethod
    def chance_of(cls, config: NewNameConfig) -> float:
        """Any one symbol."""
        return 1 / config.vocab

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Fair symbols; the first place has nothing before it and is not scored."""
        words = torch.randint(FIRST, FIRST + self.config.vocab, (rows, level), generator=generator)
        targets = torch.zeros_like(words)
        targets[:, 1:] = words[:, :-1]
        return Batch(sources=(), inputs=words, targets=targets, mask=targets > 0)
