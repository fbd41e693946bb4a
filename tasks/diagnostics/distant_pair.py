"""Distant pair: a token asks for the symbol at a chosen distance, before or behind it.

A dependency of one length, for the argument of Vaswani et al., 2017, "Attention is all you need",
https://arxiv.org/abs/1706.03762, section 4: a signal crosses a layer of self-attention in one step,
and a recurrent layer in as many steps as there are tokens. The partner is found by its kind, which
needs no positions, or by its distance, which needs nothing else.

Deviations: no paper has this task.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.batch import Batch, Sizes, Text
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.diagnostics.diagnostic import BOS, FIRST, Diagnostic


@dataclass(frozen=True, kw_only=True)
class DistantPairConfig(Config):
    """Options of the distant pair."""

    found_by: Annotated[Literal["kind", "distance"], Choices(("kind", "distance"))] = "kind"
    """What the asking token names: the kind of its partner, or distance and side of it."""
    nearest: Annotated[int, IntRange(1, 64, log=True)] = 2
    """Smallest distance (tokens)."""
    farthest: Annotated[int, IntRange(1, 1024, log=True)] = 64
    """Largest distance; those between are the nearest doubled again and again (tokens)."""
    length: Annotated[int, IntRange(8, 2048, log=True)] = 80
    """Tokens of every sequence."""
    pairs: Annotated[int, IntRange(1, 16)] = 4
    """Pairs of a sequence, all at one distance."""
    symbols: Annotated[int, IntRange(2, 100)] = 8
    """Symbols."""
    evaluate: int = 128
    """Examples of validation, and of each distance of the test."""

    def __post_init__(self) -> None:
        """Check that every pair has room whatever the others take."""
        if not 1 <= self.nearest <= self.farthest or min(self.pairs, self.evaluate) < 1:
            raise InvalidConfig(
                "distant_pair: 1 <= nearest <= farthest, pairs and evaluate at least 1, got "
                f"{self.nearest}, {self.farthest}, {self.pairs}, {self.evaluate}."
            )
        if self.symbols < 2:
            raise InvalidConfig(f"distant_pair: symbols must be at least 2, got {self.symbols}.")
        # a pair takes its own first place from the others, and those at the distance around it
        least = self.farthest + 3 * self.pairs - 2
        if self.length < least:
            raise InvalidConfig(
                f"distant_pair: {self.pairs} pairs at a distance of {self.farthest} need a "
                f"length of {least}, got {self.length}."
            )

    @property
    def distances(self) -> tuple[int, ...]:
        """All distances."""
        found = [self.nearest]
        while 2 * found[-1] <= self.farthest:
            found.append(2 * found[-1])
        return tuple(sorted({*found, self.farthest}))


@register(
    "task",
    "distant_pair",
    config=DistantPairConfig,
    citation=Citation(
        text="Vaswani et al., 2017", url="https://arxiv.org/abs/1706.03762", where="section 4"
    ),
)
class DistantPair(Diagnostic):
    """Some tokens ask; the answer is the symbol of the partner, before or behind, among others.

    The level of a batch is the distance of its pairs.

    >>> task = DistantPair(DistantPairConfig(farthest=4, length=8, pairs=1, evaluate=1), seed=0)
    >>> batch = task.evaluation("validation")[0]
    >>> " ".join(task.tokens(batch.sources[0].tokens[0].tolist(), source=True))
    'a h ?0 a g d 0:c d'
    >>> " ".join(task.tokens(batch.targets[0].tolist(), source=False))
    '· · c · · · · ·'
    """

    axis = "difficulty"
    presets = {
        "smoke": TaskPreset(
            options="distant_pair[farthest=8,length=16,pairs=2,evaluate=32]",
            backbone="tagger[width=32,layers=1]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.8,
        ),
        "quick": TaskPreset(
            options="distant_pair",
            backbone="tagger[width=64,layers=1]",
            protocol="adam[lr=0.003,steps=600,batch=32,evaluate_every=100,stop_at=0.995]",
            seconds=20.0,
        ),
        "standard": TaskPreset(
            options="distant_pair[farthest=256,length=320]",
            backbone="tagger[width=64,layers=2]",
            protocol="adam[lr=0.003,steps=2000,batch=32,evaluate_every=200,stop_at=0.995]",
            seconds=300.0,
        ),
    }

    def __init__(self, config: DistantPairConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.start(config.distances, config.distances, config.evaluate)
        self.asking = FIRST + config.symbols
        """First id of tokens that ask."""
        by_kind = config.found_by == "kind"
        self.marked = self.asking + (config.pairs if by_kind else 2 * len(config.distances))
        """First id of partners that tell their kind."""
        words = self.marked + (config.pairs * config.symbols if by_kind else 0)
        self.sizes = Sizes((words,), FIRST + config.symbols, config.length)

    @classmethod
    def trained_to_of(cls, config: DistantPairConfig) -> float:
        """Training has all distances."""
        return float(config.farthest)

    @classmethod
    def chance_of(cls, config: DistantPairConfig) -> float:
        """Any one symbol."""
        return 1 / config.symbols

    def draw(self, rows: int, level: int, generator: torch.Generator) -> Batch:
        """Sequences of symbols with some pairs at one distance, each asked from a random end."""
        config = self.config
        words = torch.randint(
            FIRST, FIRST + config.symbols, (rows, config.length), generator=generator
        )
        first = _first_places(rows, config.pairs, config.length - level, level, generator)
        ahead = torch.randint(2, first.shape, generator=generator)
        asks, partner = first + level * (1 - ahead), first + level * ahead
        answers = words.gather(1, partner)
        if config.found_by == "kind":
            kinds = torch.arange(config.pairs).expand_as(first)
            told = self.marked + kinds * config.symbols + answers - FIRST
            words.scatter_(1, partner, told)
            words.scatter_(1, asks, self.asking + kinds)
        else:
            words.scatter_(1, asks, self.asking + 2 * config.distances.index(level) + ahead)
        targets = torch.zeros_like(words).scatter(1, asks, answers)
        start = torch.full((rows, 1), BOS)
        return Batch(
            sources=(Text(words, None),),
            inputs=torch.cat((start, targets[:, :-1]), 1),
            targets=targets,
            mask=targets > 0,
        )

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        """Symbols as letters; `?1` asks for the kind that `1:a` has, `?-8` for 8 tokens before."""
        return [self._name(number) for number in ids]

    def _name(self, number: int) -> str:
        if number < FIRST:
            return "·"
        if number < self.asking:
            return _letter(number - FIRST)
        if number >= self.marked:
            kind, symbol = divmod(number - self.marked, self.config.symbols)
            return f"{kind}:{_letter(symbol)}"
        asked = number - self.asking
        if self.config.found_by == "kind":
            return f"?{asked}"
        distance = self.config.distances[asked // 2]
        return f"?+{distance}" if asked % 2 else f"?-{distance}"


def _letter(symbol: int) -> str:
    return chr(ord("a") + symbol) if symbol < 26 else f"s{symbol}"


def _first_places(
    rows: int, many: int, room: int, distance: int, generator: torch.Generator
) -> Int[Tensor, "B m"]:
    """The first place of each pair, such that no place belongs to two of them."""
    free = torch.ones(rows, room)
    found = []
    for _ in range(many):
        place = torch.multinomial(free, 1, generator=generator)
        for taken in (place - distance, place, place + distance):
            inside = (taken >= 0) & (taken < room)
            free.scatter_(1, torch.where(inside, taken, place), 0.0)
        found.append(place)
    return torch.cat(found, 1)
