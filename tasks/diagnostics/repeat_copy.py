"""Copy and repeat copy: a sequence is read, then said again as often as a count demands.

Graves et al., 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401, section 4.1 (copy,
`repeats=1`) and section 4.2 (repeat copy).

Deviations: symbols of an alphabet, not vectors of random bits. The count is a word and no number,
so that no count beyond those of training can be asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import EOS, FIRST, ROSTER, Diagnostic
from tasks.metrics.accuracy import best_word

FILLER = 3


@dataclass(frozen=True, kw_only=True)
class RepeatCopyConfig(Config):
    """Options of copying."""

    length: Annotated[int, IntRange(1, 64, log=True)] = 6
    """Longest sequence in training (symbols); all shorter ones are drawn, too."""
    beyond: int = 12
    """Longest sequence of the test (symbols)."""
    repeats: Annotated[int, IntRange(1, 16)] = 2
    """Largest number of copies; each example draws its own."""
    vocab: Annotated[int, IntRange(2, 1000)] = 8
    """Symbols."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        ordered = 1 <= self.length <= self.beyond
        if not ordered or min(self.repeats, self.vocab, self.evaluate) < 1:
            raise InvalidConfig(
                "repeat_copy: 1 <= length <= beyond, and repeats, vocab and evaluate at least 1, "
                f"got {self.length}, {self.beyond}, {self.repeats}, {self.vocab}, {self.evaluate}."
            )


@register(
    "task",
    "repeat_copy",
    config=RepeatCopyConfig,
    citation=Citation(
        text="Graves et al., 2014",
        url="https://arxiv.org/abs/1410.5401",
        where="sections 4.1 and 4.2",
    ),
)
class RepeatCopy(Diagnostic):
    """Symbols and a count, then fillers; the answer is the symbols, repeated, and an end.

    >>> task = RepeatCopy(RepeatCopyConfig(length=2, beyond=2, repeats=1, evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> task.tokens(batch.inputs[0].tolist(), source=True)
    ['w0', 'w7', 'x1', '·', '·']
    >>> task.tokens(batch.targets[0, batch.mask[0]].tolist(), source=False)
    ['w0', 'w7', '</s>']
    """

    comparison = (
        *ROSTER,
        *(
            Entry(variant=name, backbone="rnn_decoder[hidden=32,embedding=16]")
            for name in ("ntm_memory", "scaled_dot", "uniform")
        ),
    )
    seen_in_training = (
        "At the quick size (seed 0) training has seen 114 of the 128 test inputs of 3 symbols and "
        "1 of 6 (126 and 3 where the count is always 1), but none that is longer than those of "
        "training. A network may have memorized the short ones, but no longer ones."
    )
    seen_under = {
        "length": 6,
        "beyond": 12,
        "repeats": (1, 2),
        "vocab": 8,
        "evaluate": 128,
    }
    presets = {
        "smoke": TaskPreset(
            options="repeat_copy[length=3,beyond=5,repeats=2,evaluate=16]",
            backbone="transformer_decoder[width=32,layers=1,heads=1]",
            protocol="adam[steps=15,batch=16,evaluate_every=15]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="repeat_copy",
            backbone="transformer_decoder[width=32,layers=1,heads=1]",
            protocol="adam[lr=0.01,steps=800,batch=16,evaluate_every=100,stop_at=0.99]",
            seconds=5.0,
        ),
        "standard": TaskPreset(
            options="repeat_copy[length=10,beyond=20,repeats=5]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=5000,batch=64,evaluate_every=500,stop_at=0.995]",
            seconds=600.0,
        ),
    }

    def __init__(self, config: RepeatCopyConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        half = max(1, config.length // 2)
        trained = range(1, config.length + 1)
        self.start(trained, [half, middle, config.beyond], config.evaluate)
        self.symbols = FIRST + config.repeats
        """The first of them; counts stand before."""
        longest = config.beyond * (config.repeats + 1) + 1
        self.sizes = Sizes((), self.symbols + config.vocab, longest)

    @classmethod
    def trained_to_of(cls, config: RepeatCopyConfig) -> float:
        """The longest pattern of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: RepeatCopyConfig) -> float:
        """The end, or one symbol, everywhere."""
        counts = range(1, config.repeats + 1)
        return best_word(config.vocab, [config.length * count for count in counts])

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Sequences of one length; a count of its own for each row."""
        config = self.config
        words = torch.randint(config.vocab, (rows, level), generator=generator) + self.symbols
        count = torch.randint(1, config.repeats + 1, (rows, 1), generator=generator)
        said = level * count
        width = level * config.repeats + 1
        place = torch.arange(width).expand(rows, -1)
        answer = words.gather(1, place % level)
        answer = torch.where(place < said, answer, torch.where(place == said, EOS, 0))
        fillers = torch.full((rows, width - 1), FILLER)
        silent = torch.zeros(rows, level, dtype=torch.int64)
        targets = torch.cat((silent, answer), 1)
        return Batch(
            sources=(),
            inputs=torch.cat((words, count - 1 + FIRST, fillers), 1),
            targets=targets,
            mask=targets > 0,
        )

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols by number, counts with a cross, fillers as a dot."""
        return [self._name(number) for number in ids]

    def _name(self, number: int) -> str:
        if number >= self.symbols:
            return f"w{number - self.symbols}"
        if number >= FIRST:
            return f"x{number - FIRST + 1}"
        return "</s>" if number == EOS else "·"
