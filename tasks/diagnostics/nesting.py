"""Nested lists: the value of each list, from the innermost to the outermost.

Nangia & Bowman, 2018, "ListOps: a diagnostic dataset for latent tree learning",
https://arxiv.org/abs/1804.06028, section 2.

Deviations: one list inside another at most, maxima and minima by default, sums as an option, no
medians; every closing bracket is answered with the value of its list, not the last one alone.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import FIRST, ROSTER, Diagnostic

CLOSE = FIRST
OPEN = {"[MAX": FIRST + 1, "[MIN": FIRST + 2, "[SM": FIRST + 3}
DIGIT = FIRST + 4
NAMES = ("]", *OPEN, *"0123456789")
Chances = npt.NDArray[np.float64]
"""Of each digit."""


@dataclass(frozen=True, kw_only=True)
class NestingConfig(Config):
    """Options of nested lists."""

    depth: Annotated[int, IntRange(1, 20, log=True)] = 3
    """Deepest list in training."""
    deeper: int = 5
    """Deepest list of the test."""
    arguments: int = 3
    """Digits and lists in a list at most; two at least."""
    sums: bool = False
    """Whether there are sums modulo ten too, not maxima and minima alone."""
    evaluate: int = 256
    """Examples of validation, and of each depth of the test."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if not 1 <= self.depth <= self.deeper or self.arguments < 2 or self.evaluate < 1:
            raise InvalidConfig(
                "nesting: 1 <= depth <= deeper, arguments >= 2 and evaluate >= 1, got "
                f"{self.depth}, {self.deeper}, {self.arguments}, {self.evaluate}."
            )


@register(
    "task",
    "nesting",
    config=NestingConfig,
    citation=Citation(
        text="Nangia & Bowman, 2018", url="https://arxiv.org/abs/1804.06028", where="section 2"
    ),
)
class Nesting(Diagnostic):
    """Lists in lists; a closing bracket is answered with the value of what it closes.

    There are few lists of depth 1, so training has seen most of those of the test. Lists that are
    deeper than those of training show whether the rule was learned or memorized.

    >>> task = Nesting(NestingConfig(depth=1, deeper=1, evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> task.tokens(batch.inputs[0].tolist(), source=True)
    ['[MAX', '7', '7', '5', ']']
    >>> task.tokens(batch.targets[0, batch.mask[0]].tolist(), source=False)
    ['7']
    """

    axis = "difficulty"
    seen_in_training = (
        "At the quick size (seed 0) training has seen 226 of the 256 test lists of depth 1, 15 of "
        "depth 2 and 1 of depth 3, but none that is deeper than those of training. A network may "
        "have memorized lists of depth 1, but none beyond depth 3."
    )
    seen_under = {"depth": 3, "deeper": 5, "arguments": 3, "sums": False, "evaluate": 256}
    comparison = (
        *ROSTER,
        *(
            Entry(variant=name, backbone="rnn_decoder[hidden=64]")
            for name in ("scaled_dot", "uniform")
        ),
    )
    pipeline_check = (
        "When it was marked, at the quick size the seeds of every network overlapped with those "
        "of uniform attention."
    )
    presets = {
        "smoke": TaskPreset(
            options="nesting[depth=2,deeper=3,evaluate=32]",
            backbone="transformer_decoder[width=32,layers=1,short_convolution=3]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="nesting",
            backbone="transformer_decoder[width=48,layers=2]",
            protocol="adam[lr=0.005,steps=600,batch=32,evaluate_every=100,stop_at=0.99]",
            seconds=2.4,
        ),
        "standard": TaskPreset(
            options="nesting[depth=6,deeper=10,arguments=5,sums=true]",
            backbone="transformer_decoder[width=96,layers=4]",
            protocol="adam[lr=0.002,steps=4000,batch=64,evaluate_every=400,stop_at=0.995]",
            seconds=600.0,
        ),
    }

    def __init__(self, config: NestingConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.start(range(1, config.depth + 1), range(1, config.deeper + 1), config.evaluate)
        longest = config.deeper * (config.arguments + 1) + 1
        self.sizes = Sizes((), DIGIT + 10, longest)

    @classmethod
    def chance_of(cls, config: NestingConfig) -> float:
        """The best digit for every bracket: small and large ones are values more often."""
        inner, found = np.full(10, 0.1), np.zeros(10)
        for _ in range(config.depth):
            inner = _values_of(inner, config)
            found += inner
        return float(found.max() / config.depth)

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Lists of one depth, padded behind."""
        chance = random.Random(int(torch.randint(2**40, (), generator=generator)))
        found = [self._list(level, chance) for _ in range(rows)]
        width = max(len(words) for words, _ in found)
        inputs = torch.tensor([words + [0] * (width - len(words)) for words, _ in found])
        targets = torch.tensor([said + [0] * (width - len(said)) for _, said in found])
        return Batch(sources=(), inputs=inputs, targets=targets, mask=targets > 0)

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Brackets and digits."""
        return [NAMES[number - FIRST] if number >= FIRST else "·" for number in ids]

    def _list(self, depth: int, chance: random.Random) -> tuple[list[int], list[int]]:
        """Tokens of a list, and the target at each of them: a digit or nothing (0)."""
        names = list(OPEN) if self.config.sums else ["[MAX", "[MIN"]
        words: list[int] = []
        opened: list[tuple[str, int, list[int]]] = []
        # lists open from the outermost on, each with the digits before the list that it holds
        for level in range(depth, 0, -1):
            name, count = chance.choice(names), chance.randint(2, self.config.arguments)
            before = chance.randrange(count) if level > 1 else count
            values = [chance.randrange(10) for _ in range(before)]
            words += [OPEN[name], *(DIGIT + value for value in values)]
            opened.append((name, count, values))
        said = [0] * len(words)
        # and close from the innermost on, each with the digits behind the list that it holds
        while opened:
            name, count, values = opened.pop()
            behind = [chance.randrange(10) for _ in range(count - len(values))]
            words += [*(DIGIT + value for value in behind), CLOSE]
            value = _value(name, values + behind)
            said += [0] * len(behind) + [DIGIT + value]
            if opened:
                opened[-1][2].append(value)
        return words, said


def _value(name: str, values: Sequence[int]) -> int:
    """What a list comes to."""
    return {"[MAX": max(values), "[MIN": min(values), "[SM": sum(values) % 10}[name]


def _values_of(inner: Chances, config: NestingConfig) -> Chances:
    """Probability of each value of a list with one argument drawn from `inner`, others evenly.

    A sum modulo ten has every value equally often, because one argument at least is drawn evenly.
    """
    even = np.full(10, 0.1)
    found = np.zeros(10)
    counts = range(2, config.arguments + 1)
    for count in counts:
        largest = _largest_of(inner, even, count)
        smallest = _largest_of(inner[::-1], even, count)[::-1]
        kinds = [largest, smallest, even] if config.sums else [largest, smallest]
        found += np.mean(kinds, axis=0) / len(counts)
    return found


def _largest_of(inner: Chances, others: Chances, count: int) -> Chances:
    """Probability of each value of the largest of one draw from `inner` and others."""
    up_to = np.cumsum(inner) * np.cumsum(others) ** (count - 1)
    return np.diff(up_to, prepend=0.0)
