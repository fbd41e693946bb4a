"""Natural language inference over generated scenes: labels are right, and minimal pairs are many.

Premise and hypothesis describe a scene (agent, verb, thing, place) in words with synonyms, wider
and narrower words, quantifiers and negation; the label follows from natural logic
(`tasks/data/scenes.py`). Two colors that change places leave the bag of words as it is. For
minimal pairs see Kaushik et al., 2020, "Learning the difference that makes a difference with
counterfactually-augmented data", https://arxiv.org/abs/1909.12434.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.drawing import drawing, shown_to_networks
from tasks.data.scenes import Scene, draw, edit, relation, rephrased, vocabulary
from tasks.data.snli import RELATIONS
from tasks.data.words import Vocabulary
from tasks.text_pairs.entailment import Inference, Labeled, label_batch

QUANTIFIERS = ("a", "a", "every", "no")
LONGEST = 11
"""Words of a sentence with all its parts, and its point."""
COUNTED = 20_000
"""Largest number of training pairs for the non-neural baselines; a pair takes several draws."""


@dataclass(frozen=True, kw_only=True)
class NliSynConfig(Config):
    """Options of generated inference."""

    changes: Annotated[int, IntRange(1, 4)] = 2
    """Parts of a scene that differ at most, synonyms aside."""
    validate: int = 500
    """Pairs of each validation, and nearly as many minimal pairs."""
    test: int = 1000
    """Pairs of the test, and nearly as many minimal pairs."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if min(self.changes, self.validate, self.test) < 1:
            raise InvalidConfig(
                "nli_syn: changes, validate and test must be at least 1, got "
                f"{self.changes}, {self.validate}, {self.test}."
            )


class ScenePair(NamedTuple):
    """Two scenes and their relation."""

    premise: Scene
    hypothesis: Scene
    label: str


@register(
    "task",
    "nli_syn",
    config=NliSynConfig,
    citation=Citation(
        text="MacCartney & Manning, 2009", url="https://aclanthology.org/W09-3714", where="labels"
    ),
)
class NliSyn(Inference):
    """Scenes; as many entailments as neutral pairs and contradictions. Words are not inflected.

    >>> task = NliSyn(NliSynConfig(test=1), seed=3)
    >>> for batch in task.evaluation("test"):
    ...     for text in batch.sources:
    ...         print(" ".join(task.words.decode(text.tokens[0].tolist())))
    ...     print("  ", RELATIONS[int(batch.targets)])
    a animal sells a yellow instrument in the street .
    a animal sells a instrument in the station .
       contradiction
    a animal sells a yellow instrument in the street .
    a animal sells a instrument .
       entailment
    """

    presets = {
        "smoke": TaskPreset(
            options="nli_syn[validate=64,test=64]",
            backbone="pair[embedding=16,hidden=16]",
            protocol="adam[steps=30,batch=16,evaluate_every=15]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="nli_syn",
            backbone="pair[embedding=64,hidden=64]",
            protocol="adam[lr=0.003,steps=1000,batch=64,evaluate_every=250,stop_at=0.98]",
            seconds=15.0,
        ),
        "standard": TaskPreset(
            options="nli_syn[test=3000]",
            backbone="pair[embedding=128,hidden=128]",
            protocol="adam[lr=0.002,steps=6000,batch=64,evaluate_every=500,stop_at=0.995]",
            seconds=180.0,
        ),
    }
    comparison = (
        Entry(variant="decomposable"),
        Entry(
            variant="decomposable[position=distance_bias]",
            backbone="pair[embedding=64,hidden=64,intra=true]",
            slot="self",
        ),
        Entry(variant="dot"),
        Entry(variant="additive"),
        # two sentences that are encoded apart and compared by their means, without word attention
        *(
            Entry(variant=name, backbone="pair[embedding=64,hidden=64,encoder=birnn[cell=lstm]]")
            for name in ("decomposable", "uniform")
        ),
        Entry(variant="scaled_dot", backbone="pair[embedding=64,hidden=64,encoder=transformer]"),
    )
    ceiling = 1.0

    def __init__(self, config: NliSynConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.words = Vocabulary(vocabulary())
        self.sizes = Sizes((len(self.words),) * 2, len(RELATIONS), LONGEST)
        self._rows: dict[str, list[Labeled]] = {}
        self._changed: dict[str, list[Labeled]] = {}

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Fresh pairs."""
        while True:
            rng = drawing(generator)
            yield label_batch([self._encode(self._draw_pair(rng)) for _ in range(batch_size)])

    def rows(self, split: Split) -> Sequence[Labeled]:
        """Pairs of a split; of training, some that baselines are counted on."""
        if split not in self._rows:
            self._make(split)
        return self._rows[split]

    def changed(self, split: Split) -> Sequence[Labeled]:
        """For nearly each pair one that differs in one part of the hypothesis, and in its label."""
        if split not in self._changed:
            self._make(split)
        return self._changed[split]

    def examples(self) -> Batch:
        """Pairs of the grammar: a wider word, quantifiers, and colors that change places."""
        return self.written(
            (
                ("a red dog sells a saw .", "a animal sells a tool .", "entailment"),
                ("no animal lifts a drum .", "no goat lifts a red drum .", "entailment"),
                (
                    "a red cat hides a blue pear .",
                    "a blue cat hides a red pear .",
                    "contradiction",
                ),
            )
        )

    def _make(self, split: Split) -> None:
        seen = shown_to_networks(type(self), COUNTED)
        count = {"validation": self.config.validate, "test": self.config.test}.get(split, seen)
        generator = self.seeded(split)
        rng = drawing(generator)
        drawn = [self._draw_pair(rng) for _ in range(count)]
        self._rows[split] = [self._encode(one) for one in drawn]
        # minimal pairs are neither trained nor counted on
        pairs = (minimal_pair(one, rng) for one in drawn if split != "train")
        self._changed[split] = [self._encode(pair) for pair in pairs if pair is not None]

    def _draw_pair(self, rng: random.Random) -> ScenePair:
        """A pair with a label drawn first, so that labels are even."""
        wanted = rng.choice(RELATIONS)
        while True:
            premise = draw(rng, quantifiers=QUANTIFIERS)
            for _ in range(20):
                hypothesis = premise
                for _ in range(rng.randint(1, self.config.changes)):
                    hypothesis = edit(hypothesis, rng)
                if relation(premise, hypothesis) == wanted:
                    return ScenePair(premise, rephrased(hypothesis, rng), wanted)

    def _encode(self, pair: ScenePair) -> Labeled:
        return Labeled(
            self.words.encode(pair.premise.words()),
            self.words.encode(pair.hypothesis.words()),
            RELATIONS.index(pair.label),
        )


def minimal_pair(pair: ScenePair, rng: random.Random) -> ScenePair | None:
    """The same premise, and a hypothesis with one part changed so that the label is another.

    None where no change was found: two parts that differ may leave a pair neutral whatever one of
    them becomes.
    """
    for _ in range(40):
        hypothesis = edit(pair.hypothesis, rng, quantifier=0.1)
        label = relation(pair.premise, hypothesis)
        if label != pair.label:
            return ScenePair(pair.premise, hypothesis, label)
    return None
