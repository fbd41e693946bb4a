"""Questions that need one, two or three facts: where a thing is that is in another thing.

After the tasks with supporting facts of Weston et al., 2015, "Towards AI-complete question
answering: a set of prerequisite toy tasks", https://arxiv.org/abs/1502.05698, sections 3.1 and 4,
in stories of nothing but links of such chains. A memory read once can follow one link; a
question needs as many hops as facts.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.drawing import drawing
from tasks.data.words import Vocabulary
from tasks.reading.stories import Asked, Reading, question_batch, readers

THINGS = ("ring", "coin", "key", "map", "pen", "cup", "book", "doll")
INSIDE = (
    ("bag", "box", "jar", "purse", "tin", "pouch", "case", "bowl"),
    ("chest", "trunk", "crate", "basket", "drawer", "barrel", "cart", "locker"),
)
ROOMS = ("kitchen", "garden", "office", "bedroom", "hallway", "cellar", "attic", "library")
COUNTED = 1000
"""Training questions that baselines are counted on."""


@dataclass(frozen=True, kw_only=True)
class ChainsConfig(Config):
    """Options of the chains of facts."""

    facts: Annotated[int, IntRange(1, 3)] = 3
    """Largest number of facts of an answer; questions need one to this many."""
    chains: Annotated[int, IntRange(2, 8)] = 3
    """Chains of a story, all of the same length."""
    validate: int = 300
    """Questions of each validation."""
    test: int = 900
    """Questions of the test."""
    joined: bool = False
    """Whether story and question are one text, for networks that read one."""

    def __post_init__(self) -> None:
        """Check the counts."""
        good = 1 <= self.facts <= 3 and 2 <= self.chains <= 8
        if not good or min(self.validate, self.test) < self.facts:
            raise InvalidConfig(
                "chains: facts is 1 to 3, chains 2 to 8, validate and test at least facts, got "
                f"{self.facts}, {self.chains}, {self.validate}, {self.test}."
            )


@register(
    "task",
    "chains",
    config=ChainsConfig,
    citation=Citation(
        text="Weston et al., 2015", url="https://arxiv.org/abs/1502.05698", where="sections 3.1, 4"
    ),
)
class Chains(Reading):
    """Links of several chains in any order, and a question about the first of one.

    >>> task = Chains(ChainsConfig(facts=2, chains=2, test=2), seed=0)
    >>> batch = task.evaluation("test")[1]
    >>> " ".join(task.words.decode(batch.sources[0].tokens[0, :14].tolist()))
    'the purse is in the bedroom . the coin is in the box .'
    >>> task.words.decode(batch.sources[1].tokens[0].tolist())[3], task.words.words[batch.targets]
    ('ring', 'bedroom')
    """

    presets = {
        "smoke": TaskPreset(
            options="chains[validate=30,test=60]",
            backbone="memn2n",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="chains",
            backbone="memn2n[width=32,hops=3]",
            protocol="adam[lr=0.005,steps=1500,batch=32,evaluate_every=500,stop_at=0.99]",
            seconds=15.0,
        ),
        "standard": TaskPreset(
            options="chains[chains=6]",
            backbone="memn2n[width=50,hops=3]",
            protocol="adam[lr=0.005,steps=8000,batch=32,evaluate_every=1000,stop_at=0.995]",
            seconds=120.0,
        ),
    }
    comparison = readers("chains")
    seen_in_training = (
        "At the quick size (seed 0) training has seen 17 of the 300 test questions of one fact "
        "with their story, word for word (277 with `chains=2`), but none of two or three facts. "
        "A network may have memorized the former, but no others."
    )
    # story and question are the same ones if they are one text
    seen_under = {"facts": 3, "chains": (2, 3), "test": 900}
    axis = "facts"
    ceiling = 1.0

    def __init__(self, config: ChainsConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.joined = config.joined
        names = [*THINGS, *(name for level in INSIDE for name in level), *ROOMS]
        self.words = Vocabulary(["where", "?", "the", "is", "in", ".", *names])
        vocab = len(self.words)
        longest = 7 * config.facts * config.chains + 5
        self.sizes = Sizes((vocab,) if self.joined else (vocab, vocab), vocab, longest)

    @classmethod
    def chance_of(cls, config: ChainsConfig) -> float:
        """One of the rooms that the story names."""
        return 1 / config.chains

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh stories, each of one to `facts` links."""
        while True:
            rng = drawing(generator)
            numbers = [rng.randint(1, self.config.facts) for _ in range(batch_size)]
            yield question_batch([self._asked(n, rng) for n in numbers], self.joined)

    def rows(self, split: Split) -> Sequence[Asked]:
        """As many questions of each number of facts; of training, some to count."""
        count = {"validation": self.config.validate, "test": self.config.test}.get(split, COUNTED)
        rng = drawing(self.seeded(split))
        return [self._asked(1 + at % self.config.facts, rng) for at in range(count)]

    def examples(self) -> Batch:
        """Two facts of four."""
        story = "the cup is in the jar . the key is in the box . the box is in the attic ."
        return self.written(
            ((f"{story} the jar is in the office .", "where is the key ?", "attic", (1, 2)),)
        )

    def _asked(self, facts: int, rng: random.Random) -> Asked:
        levels = [THINGS, *INSIDE[: facts - 1], ROOMS]
        drawn = [rng.sample(level, self.config.chains) for level in levels]
        chains = list(zip(*drawn, strict=True))
        links = [(number, at) for number in range(len(chains)) for at in range(facts)]
        rng.shuffle(links)
        story = tuple(
            self.words.encode(f"the {chains[n][at]} is in the {chains[n][at + 1]} .".split())
            for n, at in links
        )
        supporting = tuple(place for place, (number, _) in enumerate(links) if number == 0)
        question = self.words.encode(f"where is the {chains[0][0]} ?".split())
        return Asked(story, question, self.words.encode([chains[0][-1]])[0], supporting, facts)
