"""Parity: whether the number of ones so far is odd, at every position.

Hahn, 2020, "Theoretical limitations of self-attention in neural sequence models",
https://arxiv.org/abs/1906.06755, section 4: soft attention cannot compute it reliably at all
lengths.

Deviations: answered at every position, not only at the last, which makes short lengths learnable.
In a quick run scaled dot products are hardly better than uniform weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry, entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import FIRST, ROSTER, Diagnostic
from tasks.modern import TRACKERS


@dataclass(frozen=True, kw_only=True)
class ParityConfig(Config):
    """Options of parity."""

    length: Annotated[int, IntRange(2, 512, log=True)] = 12
    """Bits in training."""
    beyond: int = 24
    """Longest sequence of the test (bits)."""
    evaluate: int = 256
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 2 <= self.length <= self.beyond or self.evaluate < 1:
            raise InvalidConfig(
                "parity: 2 <= length <= beyond and evaluate >= 1, got "
                f"{self.length}, {self.beyond}, {self.evaluate}."
            )


@register(
    "task",
    "parity",
    config=ParityConfig,
    citation=Citation(text="Hahn, 2020", url="https://arxiv.org/abs/1906.06755", where="section 4"),
)
class Parity(Diagnostic):
    """Random bits; each position is answered with the parity of the bits up to it.

    Training is a stream without end, but there are only `2 ** length` strings: at the length of
    training most of the test has been seen. Longer ones show whether the rule was learned.

    >>> task = Parity(ParityConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> ones = sum(number == 5 for number in batch.inputs[0].tolist())
    >>> int(batch.targets[0, -1]) - 4 == ones % 2
    True
    """

    seen_in_training = (
        "At the quick size (seed 0) training has seen 250 of the 256 test strings of 12 bits, of "
        "which there are only 4096, and shorter ones as their beginnings, but none of 18 or 24 "
        "bits. A network may have memorized strings of the training length, but no longer ones."
    )
    seen_under = {"length": 12, "beyond": 24, "evaluate": 256}
    comparison = (
        *ROSTER,
        *(
            Entry(variant=name, backbone="rnn_decoder[hidden=32]")
            for name in ("scaled_dot", "uniform")
        ),
    )
    pipeline_check = (
        "When it was marked, at the quick size the seeds of every network overlapped with those "
        "of uniform attention."
    )
    presets = {
        "smoke": TaskPreset(
            options="parity[length=6,beyond=10,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="parity",
            backbone="transformer_decoder[width=32,layers=2]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=1.3,
        ),
        "standard": TaskPreset(
            options="parity[length=24,beyond=48]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=4000,batch=64,evaluate_every=400,stop_at=0.995]",
            seconds=120.0,
        ),
        "modern": TaskPreset(
            options="parity[length=12,beyond=48,evaluate=128]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=500,batch=32,evaluate_every=100,stop_at=0.999]",
            seconds=6.0,
            comparison=entries(*TRACKERS),
            evidence=True,
        ),
    }
    chance = 0.5

    def __init__(self, config: ParityConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        middle = (config.length + config.beyond) // 2
        half = max(2, config.length // 2)
        self.start([config.length], [half, middle, config.beyond], config.evaluate)
        self.sizes = Sizes((), FIRST + 2, config.beyond)

    @classmethod
    def trained_to_of(cls, config: ParityConfig) -> float:
        """The length of training."""
        return float(config.length)

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Fair bits."""
        bits = torch.randint(0, 2, (rows, level), generator=generator)
        mask = torch.ones_like(bits, dtype=torch.bool)
        parity = bits.cumsum(1) % 2
        return Batch(sources=(), inputs=bits + FIRST, targets=parity + FIRST, mask=mask)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Bits."""
        return [str(number - FIRST) if number >= FIRST else "·" for number in ids]
