"""Selective copying: a few symbols among noise are repeated in their order.

Gu & Dao, 2024, "Mamba: linear-time sequence modeling with selective state spaces",
https://arxiv.org/abs/2312.00752, section 4.1.1.

Deviations: an encoder-decoder reads it, so that attention is over a source; noise is of several
kinds, and the answer ends in its own token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes, Text
from bench.api.calibration import Setting
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import BESIDE_A_SOURCE, BOS, EOS, FIRST, Diagnostic
from tasks.metrics.accuracy import TOKEN_ACCURACY, best_word


@dataclass(frozen=True, kw_only=True)
class SelectiveCopyConfig(Config):
    """Options of selective copying."""

    length: Annotated[int, IntRange(2, 512, log=True)] = 24
    """Source tokens in training."""
    beyond: int = 60
    """Longest source of the test (tokens)."""
    chosen: Annotated[int, IntRange(1, 64, log=True)] = 8
    """Symbols among the noise."""
    vocab: Annotated[int, IntRange(2, 1000)] = 12
    """Symbols that are copied."""
    noise: int = 4
    """Symbols that are not."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        least = min(self.chosen, self.vocab, self.noise, self.evaluate)
        if not self.chosen <= self.length <= self.beyond or least < 1:
            raise InvalidConfig(
                "selective_copy: 1 <= chosen <= length <= beyond, and vocab, noise and evaluate at "
                f"least 1, got {self.chosen}, {self.length}, {self.beyond}, {self.vocab}, "
                f"{self.noise}, {self.evaluate}."
            )


@register(
    "task",
    "selective_copy",
    config=SelectiveCopyConfig,
    citation=Citation(
        text="Gu & Dao, 2024", url="https://arxiv.org/abs/2312.00752", where="section 4.1.1"
    ),
)
class SelectiveCopy(Diagnostic):
    """Symbols among noise; the answer is the symbols in their order.

    >>> task = SelectiveCopy(SelectiveCopyConfig(evaluate=1, noise=2), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> [n for n in batch.sources[0].tokens[0].tolist() if n >= 6] == batch.targets[0, :-1].tolist()
    True
    """

    headline = area_under_curve(TOKEN_ACCURACY)
    comparison = BESIDE_A_SOURCE
    capabilities = frozenset({"gold_alignment", "source_tokens"})
    calibration = (Setting(options="selective_copy", protocol="adam[evaluate_every=25]"),)
    presets = {
        "smoke": TaskPreset(
            options="selective_copy[length=6,beyond=8,chosen=2,evaluate=32]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="selective_copy",
            backbone="rnn_seq2seq[hidden=48,embedding=24]",
            protocol="adam[lr=0.005,steps=400,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=2.5,
        ),
        "standard": TaskPreset(
            options="selective_copy[length=32,beyond=96,chosen=8]",
            backbone="rnn_seq2seq[hidden=96,embedding=48]",
            protocol="adam[lr=0.003,steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=240.0,
        ),
    }

    def __init__(
        self, config: SelectiveCopyConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        half = max(config.chosen, config.length // 2)
        self.start([config.length], [half, middle, config.beyond], config.evaluate)
        words = FIRST + config.noise + config.vocab
        self.sizes = Sizes((words,), words, config.beyond + 1)

    @classmethod
    def trained_to_of(cls, config: SelectiveCopyConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: SelectiveCopyConfig) -> float:
        """EOS, or one symbol, everywhere."""
        return best_word(config.vocab, [config.chosen])

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Noise everywhere, then symbols at positions drawn without replacement."""
        config, first = self.config, FIRST + self.config.noise
        source = torch.randint(FIRST, first, (rows, level), generator=generator)
        places = torch.rand(rows, level, generator=generator).argsort(1)[:, : config.chosen]
        places = places.sort(1).values
        symbols = torch.randint(
            first, first + config.vocab, (rows, config.chosen), generator=generator
        )
        source.scatter_(1, places, symbols)
        end = torch.full((rows, 1), EOS)
        source, targets = torch.cat((source, end), 1), torch.cat((symbols, end), 1)
        aligned = torch.cat((places, torch.full((rows, 1), level)), 1)
        return Batch(
            sources=(Text(source, None),),
            inputs=torch.cat((torch.full((rows, 1), BOS), symbols), 1),
            targets=targets,
            mask=torch.ones_like(targets, dtype=torch.bool),
            extended=source,
            gold=torch.nn.functional.one_hot(aligned, level + 1).float(),
        )

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols by number, noise as marks."""
        first = FIRST + self.config.noise
        names = {EOS: "</s>", BOS: "<s>"}
        return [names.get(n, f"w{n - first}" if n >= first else "·") for n in ids]
