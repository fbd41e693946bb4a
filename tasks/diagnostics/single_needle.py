"""A single needle: the value of one key that stands somewhere in a long text.

Hsieh et al., 2024, "RULER: what's the real context size of your long-context language models?",
https://arxiv.org/abs/2404.06654, section 3: S-NIAH-1 with a haystack that repeats itself, S-NIAH-2
with one that varies, S-NIAH-3 with long values.

Deviations: symbols instead of sentences, so that it can be learned from scratch; the haystack that
varies is drawn from keys and values alike, not from essays. The three settings are options:
`haystack=repeated`, `haystack=varied`, and `haystack=varied,value=4`. `distractors` are needles
with other keys, which RULER has under the name of multiple keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.batch import Batch, Sizes
from bench.api.comparison import entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import COPYING, FIRST, ROSTER, Diagnostic
from tasks.metrics.accuracy import TOKEN_ACCURACY
from tasks.modern import NEEDLES, WEIGHTS

MARK, SYMBOLS = FIRST, FIRST + 1
SENTENCE = 4
"""Symbols of the sentence that a repeated haystack repeats."""


@dataclass(frozen=True, kw_only=True)
class SingleNeedleConfig(Config):
    """Options of the single needle."""

    haystack: Literal["repeated", "varied"] = "varied"
    """One short sentence again and again, or symbols at random."""
    value: Annotated[int, IntRange(1, 8)] = 1
    """Symbols of the value."""
    distractors: Annotated[int, IntRange(0, 16)] = 0
    """Further needles, with other keys and values."""
    length: Annotated[int, IntRange(8, 4096, log=True)] = 32
    """Tokens in training."""
    beyond: int = 128
    """Longest sequence of the test (tokens)."""
    vocab: Annotated[int, IntRange(2, 1000)] = 32
    """Symbols; one half are keys, the other half values."""
    evaluate: int = 128
    """Examples of validation, and of each length of the test."""

    def __post_init__(self) -> None:
        """Check that the needles have room in the shortest test."""
        needles = (self.distractors + 1) * (self.value + 2)
        least = needles + self.value + 1
        if not least <= self.length // 2 or not self.length <= self.beyond:
            raise InvalidConfig(
                f"single_needle: 2 * {least} <= length <= beyond, for the needles and the "
                f"question have room in half of it; got {self.length}, {self.beyond}."
            )
        if self.value < 1 or not 0 <= self.distractors < self.vocab // 2 or self.evaluate < 1:
            raise InvalidConfig(
                "single_needle: value and evaluate at least 1, distractors fewer than keys, got "
                f"{self.value}, {self.evaluate}, {self.distractors} of {self.vocab // 2}."
            )


@register(
    "task",
    "single_needle",
    config=SingleNeedleConfig,
    citation=Citation(
        text="Hsieh et al., 2024", url="https://arxiv.org/abs/2404.06654", where="section 3"
    ),
)
class SingleNeedle(Diagnostic):
    """A mark, a key and its value in a haystack; the mark and the key at the end ask for the value.

    >>> task = SingleNeedle(SingleNeedleConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> row = batch.inputs[0].tolist()
    >>> at = row.index(4)
    >>> row[at + 1] == row[-1], row[at + 2] == int(batch.targets[0, -1])
    (True, True)
    """

    headline = area_under_curve(TOKEN_ACCURACY)
    comparison = (*ROSTER, *COPYING)
    presets = {
        "smoke": TaskPreset(
            options="single_needle[length=16,beyond=24,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=4]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="single_needle",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=4]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=25,stop_at=0.995]",
            seconds=4.0,
        ),
        "standard": TaskPreset(
            options="single_needle[value=4,length=256,beyond=1024]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=4]",
            protocol="adam[lr=0.003,steps=2000,batch=16,evaluate_every=100,stop_at=0.995]",
            seconds=300.0,
        ),
        "modern": TaskPreset(
            options="single_needle[length=64,beyond=256,evaluate=64]",
            backbone="transformer_decoder[width=64,layers=2,short_convolution=4]",
            protocol="adam[lr=0.003,steps=300,batch=32,evaluate_every=25,stop_at=0.999]",
            seconds=14.0,
            comparison=(
                *entries(*NEEDLES, *WEIGHTS),
                *entries("scaled_dot", *NEEDLES, task="single_needle[value=4]"),
                *entries("scaled_dot", *NEEDLES, task="single_needle[distractors=3]"),
            ),
        ),
    }

    def __init__(self, config: SingleNeedleConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.half = config.vocab // 2
        twice = min(2 * config.length, config.beyond)
        self.start([config.length], [config.length // 2, twice, config.beyond], config.evaluate)
        self.sizes = Sizes((), SYMBOLS + 2 * self.half, config.beyond)

    @classmethod
    def trained_to_of(cls, config: SingleNeedleConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: SingleNeedleConfig) -> float:
        """Any one value."""
        return 1 / (config.vocab // 2)

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Needles at places of their own, the first of which is asked for."""
        config, many = self.config, self.config.distractors + 1
        keys = torch.rand(rows, self.half, generator=generator).argsort(1)[:, :many] + SYMBOLS
        low, high = SYMBOLS + self.half, SYMBOLS + 2 * self.half
        values = torch.randint(low, high, (rows, many, config.value), generator=generator)
        marks = torch.full((rows, many, 1), MARK)
        needles = torch.cat((marks, keys.unsqueeze(-1), values), -1)
        question = needles[:, 0, :-1]
        inputs = torch.empty(rows, level, dtype=torch.long)
        room = level - question.shape[1]
        inputs[:, :room] = self._haystack(rows, room, generator)
        inputs[:, room:] = question
        starts = _places(rows, many, needles.shape[2], room, generator)
        places = (starts.unsqueeze(-1) + torch.arange(needles.shape[2])).flatten(1)
        inputs.scatter_(1, places, needles.flatten(1))
        targets = torch.zeros_like(inputs)
        targets[:, level - config.value :] = values[:, 0]
        return Batch(sources=(), inputs=inputs, targets=targets, mask=targets > 0)

    def _haystack(self, rows: int, room: int, generator: torch.Generator) -> Int[Tensor, "B n"]:
        """Keys and values at random, or a sentence of them again and again."""
        repeated = self.config.haystack == "repeated"
        drawn = SENTENCE if repeated else room
        last = SYMBOLS + 2 * self.half
        words = torch.randint(SYMBOLS, last, (rows, drawn), generator=generator)
        return words[:, torch.arange(room) % drawn]

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Keys as k, values as v, and a sign for the mark."""
        names = []
        for number in ids:
            index = number - SYMBOLS
            letter = f"k{index}" if index < self.half else f"v{index - self.half}"
            names.append("▶" if number == MARK else letter if number > MARK else "·")
        return names


def _places(
    rows: int, many: int, size: int, room: int, generator: torch.Generator
) -> Int[Tensor, "B m"]:
    """Where each of several needles begins; none covers another, and every order is as likely.

    Needles and single symbols of the haystack are laid out one after the other in a random order.
    """
    blocks = room - many * (size - 1)
    order = torch.rand(rows, blocks, generator=generator).argsort(1)
    lengths = torch.where(order < many, size, 1)
    begins = lengths.cumsum(1) - lengths
    return begins.gather(1, order.argsort(1)[:, :many])
