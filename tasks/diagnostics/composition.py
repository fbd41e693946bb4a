"""Composition: the product of all permutations read so far, at every position.

Merrill, Petty and Sabharwal, 2024, "The illusion of state in state-space models",
https://arxiv.org/abs/2404.08819, sections 4 and 5: the word problem of the symmetric group S5.
Grazzi et al., 2024, "Unlocking state-tracking in linear RNNs through negative eigenvalues",
https://arxiv.org/abs/2411.12537: the same for S3, and for swaps alone.

Deviations: much shorter sequences, trained at one length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Annotated, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.batch import Batch, Sizes
from bench.api.comparison import entries
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import beyond_training
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import FIRST, ROSTER, Diagnostic
from tasks.metrics.accuracy import TOKEN_ACCURACY
from tasks.modern import TRACKERS

MOVED = {"s3": 3, "s5": 5}
"""Things that a group permutes."""
ELEMENTS = {"s3": 6, "s5": 120}


@dataclass(frozen=True, kw_only=True)
class CompositionConfig(Config):
    """Options of composition."""

    group: Literal["s3", "s5"] = "s3"
    """All permutations of three things or of five. Composing five is hard for NC1, so a network
    that can be computed in TC0, as attention and diagonal recurrences of fixed depth can, composes
    them at every length only if the two classes are one."""
    moves: Literal["all", "swaps"] = "all"
    """What is read: any permutation, or swaps of two things, which make all others."""
    length: Annotated[int, IntRange(2, 512, log=True)] = 12
    """Permutations in training."""
    beyond: int = 48
    """Longest sequence of the test (permutations)."""
    evaluate: int = 128
    """Examples of each length of validation and test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 2 <= self.length < self.beyond or self.evaluate < 1:
            raise InvalidConfig(
                "composition: 2 <= length < beyond and evaluate >= 1, got "
                f"{self.length}, {self.beyond}, {self.evaluate}."
            )


@register(
    "task",
    "composition",
    config=CompositionConfig,
    citation=Citation(
        text="Merrill et al., 2024", url="https://arxiv.org/abs/2404.08819", where="section 5"
    ),
)
class Composition(Diagnostic):
    """Permutations or swaps alone; each position is answered with the product of those up to it.

    The first one is applied first. Permutations are numbered in the order of their digits, so that
    number 0 changes nothing.

    >>> task = Composition(CompositionConfig(evaluate=1), seed=0)
    >>> batch = task.evaluation("test")[0]
    >>> int(batch.targets[0, 0]) == int(batch.inputs[0, 0])
    True
    >>> task.tokens([4, 9], source=True)
    ['123', '321']
    """

    headline = beyond_training(TOKEN_ACCURACY)
    named_by = ("group", "moves")
    comparison = ROSTER
    seen_in_training = (
        "At the quick size (seed 0) training has seen 35 of the 128 test sequences of 6 moves as "
        "beginnings of longer ones, but none of 12 or more. Scores beyond the training length "
        "cannot be memory."
    )
    seen_under = {
        "group": "s3",
        "moves": "all",
        "length": 12,
        "beyond": 48,
        "evaluate": 128,
    }
    presets = {
        "smoke": TaskPreset(
            options="composition[length=6,beyond=12,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="composition",
            backbone="transformer_decoder[width=32,layers=2]",
            protocol="adam[lr=0.005,steps=500,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=6.0,
        ),
        "standard": TaskPreset(
            options="composition[group=s5]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=6000,batch=64,evaluate_every=600,stop_at=0.995]",
            seconds=180.0,
        ),
        "modern": TaskPreset(
            options="composition[moves=swaps,evaluate=64]",
            backbone="transformer_decoder[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=600,batch=32,evaluate_every=200,stop_at=0.99]",
            seconds=9.0,
            comparison=(
                *entries(*TRACKERS),
                *entries("scaled_dot", *TRACKERS, task="composition[group=s5]"),
            ),
        ),
    }

    def __init__(self, config: CompositionConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.elements = list(permutations(range(MOVED[config.group])))
        self.products = _products(self.elements)
        self.read = torch.tensor(
            [
                number
                for number, one in enumerate(self.elements)
                if config.moves == "all" or sum(a != b for a, b in enumerate(one)) == 2
            ]
        )
        middle = (config.length + config.beyond) // 2
        half = max(2, config.length // 2)
        self.start([config.length], [half, middle, config.beyond], config.evaluate)
        self.sizes = Sizes((), FIRST + len(self.elements), config.beyond)

    @classmethod
    def trained_to_of(cls, config: CompositionConfig) -> float:
        """The length of training."""
        return float(config.length)

    @classmethod
    def chance_of(cls, config: CompositionConfig) -> float:
        """Any one permutation: exact where all are read, and about chance with swaps alone.

        Products of an odd and of an even number of swaps alternate, so that few swaps reach some
        more often: of `s5` the best constant is right 0.0112 times on the lengths that rank by
        default, and this is 0.0083. Published scores were compared with it, so it stays.
        """
        return 1 / ELEMENTS[config.group]

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Uniform permutations of those that are read."""
        places = torch.randint(0, len(self.read), (rows, level), generator=generator)
        numbers = self.read[places]
        answers = torch.empty_like(numbers)
        product = torch.zeros(rows, dtype=torch.long)
        for t in range(level):
            product = self.products[product, numbers[:, t]]
            answers[:, t] = product
        mask = torch.ones_like(numbers, dtype=torch.bool)
        return Batch(sources=(), inputs=numbers + FIRST, targets=answers + FIRST, mask=mask)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Permutations as where each thing goes, counted from 1."""
        return [
            "".join(str(place + 1) for place in self.elements[number - FIRST])
            if number >= FIRST
            else "·"
            for number in ids
        ]


def _products(elements: Sequence[tuple[int, ...]]) -> Int[Tensor, "G G"]:
    """Number of the product of each pair, of which the first one is applied first."""
    number = {one: at for at, one in enumerate(elements)}
    rows = [
        [number[tuple(then[place] for place in first)] for then in elements] for first in elements
    ]
    return torch.tensor(rows)
