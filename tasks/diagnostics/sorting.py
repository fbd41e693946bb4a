"""Sorting: the symbols of a source in rising order.

Vinyals et al., 2016, "Order matters: sequence to sequence for sets",
https://arxiv.org/abs/1511.06391, section 4.2.

Deviations: symbols from an alphabet that may repeat, not floating-point numbers; they are
generated, not pointed at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes, Text
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import BESIDE_A_SOURCE, BOS, EOS, FIRST, Diagnostic
from tasks.metrics.accuracy import best_word


@dataclass(frozen=True, kw_only=True)
class SortingConfig(Config):
    """Options of sorting."""

    shortest: int = 4
    """Shortest source in training (symbols)."""
    length: Annotated[int, IntRange(2, 128, log=True)] = 12
    """Longest source in training (symbols)."""
    beyond: int = 24
    """Longest source of the test (symbols)."""
    vocab: Annotated[int, IntRange(2, 1000)] = 30
    """Symbols."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        ordered = 1 <= self.shortest <= self.length <= self.beyond
        if not ordered or min(self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                "sorting: 1 <= shortest <= length <= beyond, vocab and evaluate at least 1, got "
                f"{self.shortest}, {self.length}, {self.beyond}, {self.vocab}, {self.evaluate}."
            )


@register(
    "task",
    "sorting",
    config=SortingConfig,
    citation=Citation(
        text="Vinyals et al., 2016", url="https://arxiv.org/abs/1511.06391", where="section 4.2"
    ),
)
class Sorting(Diagnostic):
    """Random symbols; the answer is the same symbols, sorted.

    >>> task = Sorting(SortingConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> sorted(batch.sources[0].tokens[0, :-1].tolist()) == batch.targets[0, :-1].tolist()
    True
    """

    comparison = BESIDE_A_SOURCE
    capabilities = frozenset({"source_tokens"})
    presets = {
        "smoke": TaskPreset(
            options="sorting[shortest=2,length=5,beyond=8,evaluate=32]",
            backbone="rnn_seq2seq[hidden=32,embedding=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="sorting",
            backbone="rnn_seq2seq[hidden=48,embedding=24]",
            protocol="adam[lr=0.005,steps=600,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=3.2,
        ),
        "standard": TaskPreset(
            options="sorting[length=20,beyond=40,vocab=40]",
            backbone="rnn_seq2seq[hidden=96,embedding=48]",
            protocol="adam[lr=0.003,steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=240.0,
        ),
    }

    def __init__(self, config: SortingConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        trained = range(config.shortest, config.length + 1)
        self.start(trained, [config.shortest, middle, config.beyond], config.evaluate)
        words = FIRST + config.vocab
        self.sizes = Sizes((words,), words, config.beyond + 1)

    @classmethod
    def trained_to_of(cls, config: SortingConfig) -> float:
        """The longest list of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: SortingConfig) -> float:
        """EOS, or one symbol, everywhere."""
        return best_word(config.vocab, [config.length])

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Symbols that may repeat."""
        words = torch.randint(FIRST, self.sizes.target_vocab, (rows, level), generator=generator)
        ordered = words.sort(1).values
        end = torch.full((rows, 1), EOS)
        source, targets = torch.cat((words, end), 1), torch.cat((ordered, end), 1)
        return Batch(
            sources=(Text(source, None),),
            inputs=torch.cat((torch.full((rows, 1), BOS), ordered), 1),
            targets=targets,
            mask=torch.ones_like(targets, dtype=torch.bool),
            extended=source,
        )

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Numbers."""
        names = {EOS: "</s>", BOS: "<s>"}
        return [names.get(number, str(number - FIRST)) for number in ids]
