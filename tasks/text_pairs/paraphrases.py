"""Similarity of two generated sentences in meaning, from 0 to 5.

Scores are graded as in Cer et al., 2017, "SemEval-2017 task 1: semantic textual similarity",
https://aclanthology.org/S17-2001, 5 for the same meaning and 0 for nothing shared; here they are
counted, not judged: agent, verb, thing, color of the thing and place give one point each where
they mean the same, half a point where one is the class of the other or both are of one class.
Sentences come in four orders of words, and words have synonyms but no inflection.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.drawing import drawing
from tasks.data.scenes import CLASS_OF, Scene, compare, draw, rephrased, vocabulary
from tasks.data.words import Vocabulary
from tasks.text_pairs.sentence_similarity import ALIGNERS, Graded, Similarity, graded_batch

PARTS = ("agent", "verb", "thing", "thing_color", "place")
LONGEST = 13
"""Words of the longest order, its point included."""
COUNTED = 2000
"""Training pairs that baselines are counted on."""


@dataclass(frozen=True, kw_only=True)
class ParaphrasesConfig(Config):
    """Options of graded paraphrases."""

    validate: int = 500
    """Pairs of each validation."""
    test: int = 1000
    """Pairs of the test."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if min(self.validate, self.test) < 2:
            raise InvalidConfig(
                "paraphrases: validate and test must be at least 2, got "
                f"{self.validate} and {self.test}."
            )


@register(
    "task",
    "paraphrases",
    config=ParaphrasesConfig,
    citation=Citation(text="Cer et al., 2017", url="https://aclanthology.org/S17-2001"),
)
class Paraphrases(Similarity):
    """Pairs of scenes with zero to five parts changed, each in its own word order.

    >>> scene = draw(random.Random(1), quantifiers=("a",))
    >>> graded(scene, scene), graded(scene, replace(scene, verb="drops"))
    (5.0, 4.0)
    """

    presets = {
        "smoke": TaskPreset(
            options="paraphrases[validate=64,test=64]",
            backbone="pair[embedding=16,hidden=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="paraphrases",
            backbone="pair[embedding=64,hidden=64]",
            protocol="adam[lr=0.003,steps=800,batch=64,evaluate_every=200]",
            seconds=10.4,
        ),
        "standard": TaskPreset(
            options="paraphrases[test=3000]",
            backbone="pair[embedding=128,hidden=128]",
            protocol="adam[lr=0.002,steps=5000,batch=64,evaluate_every=500]",
            seconds=150.0,
        ),
    }
    comparison = (
        *ALIGNERS,
        Entry(variant="decomposable", backbone="pair[embedding=64,hidden=64,encoder=birnn]"),
        Entry(variant="uniform", backbone="pair[embedding=64,hidden=64,encoder=birnn]"),
    )
    ceiling = 1.0

    def __init__(self, config: ParaphrasesConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.words = Vocabulary(vocabulary())
        self.sizes = Sizes((len(self.words),) * 2, 1, LONGEST)

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh pairs."""
        while True:
            rng = drawing(generator)
            yield graded_batch([self._pair(rng) for _ in range(batch_size)])

    def rows(self, split: Split) -> Sequence[Graded]:
        """Pairs of a split; of training, some that baselines are counted on."""
        count = {"validation": self.config.validate, "test": self.config.test}.get(split, COUNTED)
        rng = drawing(self.seeded(split))
        return [self._pair(rng) for _ in range(count)]

    def examples(self) -> Batch:
        """The same in other words, half of it, and nothing of it."""
        said = "a dog hides a red violin in the street ."
        return self.written(
            (
                (said, "in the road a red fiddle is conceals by a hound .", 5.0),
                (said, "a cat hides a red drum in the kitchen .", 3.0),
                (said, "a nurse buys a green apple in the forest .", 0.0),
            )
        )

    def _pair(self, rng: random.Random) -> Graded:
        """A scene and another that keeps zero to five of its parts."""
        one, other = (_complete(rng) for _ in range(2))
        kept = rng.sample(PARTS, rng.randint(0, len(PARTS)))
        two = replace(other, **{part: getattr(one, part) for part in kept})
        two = rephrased(two, rng)
        first, second = (self.words.encode(said(scene, rng)) for scene in (one, two))
        return Graded(first, second, graded(one, two))


def graded(one: Scene, two: Scene) -> float:
    """Points of what both scenes share."""
    return sum(_points(getattr(one, part), getattr(two, part)) for part in PARTS)


def said(scene: Scene, rng: random.Random) -> list[str]:
    """The scene in one of four orders: active or passive, its place last or first."""
    agent, thing = ["a", scene.agent], ["a", scene.thing_color, scene.thing]
    if rng.random() < 0.5:
        clause = [*agent, scene.verb, *thing]
    else:
        clause = [*thing, "is", scene.verb, "by", *agent]
    place = ["in", "the", scene.place]
    return [*clause, *place, "."] if rng.random() < 0.5 else [*place, *clause, "."]


def _complete(rng: random.Random) -> Scene:
    """A scene with a colored thing and a place."""
    while True:
        scene = replace(draw(rng, quantifiers=("a",)), agent_color="")
        if scene.thing_color and scene.place:
            return scene


def _points(one: str, two: str) -> float:
    kind = compare(one, two)
    if kind == "equal":
        return 1.0
    same_class = one in CLASS_OF and CLASS_OF[one] == CLASS_OF.get(two)
    return 0.5 if kind in ("narrower", "wider") or same_class else 0.0
