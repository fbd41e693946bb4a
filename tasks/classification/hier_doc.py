"""Classify the topic of a document; one sentence decides it.

Every sentence mentions a topic and hedges it, but one sentence asserts its topic, and the label is
that one. Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, section 1, motivates it: not all parts of a document matter, and
which ones do depends on the context of words. The evidence is known, so the sentence with the most
weight can be compared with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer
from bench.api.batch import Sizes
from bench.api.calibration import Setting
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.metric import Metric, Scored
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.classification.drawn_texts import DrawnTextTask
from tasks.classification.keyword_cls import TOPICS
from tasks.classification.labeled_texts import Labeled, heaviest_segment
from tasks.data.drawing import drawing
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY
from tasks.metrics.labels import LABEL_ACCURACY, MACRO_F1, label_scores

TOP_SENTENCE_MATCH = Metric(
    name="top_sentence_match",
    title="Heaviest sentence holds the evidence",
    unit="fraction of documents",
    low=0.0,
    high=1.0,
    better="higher",
    group="diagnostic",
)
ASSERTIONS = ("certainly", "clearly", "indeed")
HEDGES = ("perhaps", "reportedly", "maybe", "supposedly", "possibly", "allegedly")
FIRST = 4
FLAT = "pooling[embedding=32,encoder=birnn]"


@dataclass(frozen=True, kw_only=True)
class HierDocConfig(Config):
    """Options of the documents."""

    sentences: Annotated[int, IntRange(2, 100, log=True)] = 16
    """Sentences of the longest document; the shortest has half as many."""
    words: Annotated[int, IntRange(4, 60, log=True)] = 10
    """Words of the longest sentence; the shortest has half as many and at least three."""
    noise: Annotated[int, IntRange(2, 5000, log=True)] = 2000
    """Noise words."""
    evaluate: int = 400
    """Documents of validation, and of the test."""

    def __post_init__(self) -> None:
        """Check that everything fits."""
        if self.sentences < 2 or self.words < 4 or min(self.noise, self.evaluate) < 1:
            raise InvalidConfig(
                "hier_doc: sentences must be at least 2, words 4, noise and evaluate 1, got "
                f"{self.sentences}, {self.words}, {self.noise} and {self.evaluate}."
            )


@register(
    "task",
    "hier_doc",
    config=HierDocConfig,
    citation=Citation(
        text="Yang et al., 2016", url="https://aclanthology.org/N16-1174", where="section 1"
    ),
)
class HierDoc(DrawnTextTask):
    """Sentences of noise, each with a topic word right after a hedge; one asserts it.

    >>> task = HierDoc(HierDocConfig(evaluate=1, sentences=3), seed=0)
    >>> (batch,) = task.evaluation("validation")
    >>> words = task.tokens(batch.sources[0].tokens[0].tolist(), source=True)
    >>> (position,) = [at for at, word in enumerate(words) if word in ASSERTIONS]
    >>> words[position + 1] in TOPICS[batch.references[0]]
    True
    """

    family = "long documents"
    metrics = (LABEL_ACCURACY, MACRO_F1, TOP_SENTENCE_MATCH, ALIGNMENT_ENTROPY)
    headline = area_under_curve(LABEL_ACCURACY)
    capabilities = frozenset({"gold_alignment"})
    comparison = (
        Entry(variant="han"),
        Entry(variant="han", slot="word"),
        Entry(variant="han", slot="sentence"),
        Entry(variant="feed_forward"),
        Entry(variant="max_pooling"),
        Entry(variant="last_state"),
        Entry(variant="context_vector", backbone=FLAT),
    )
    calibration = (Setting(options="hier_doc", protocol="adam[evaluate_every=25]"),)
    presets = {
        "smoke": TaskPreset(
            options="hier_doc[sentences=4,words=5,noise=20,evaluate=64]",
            backbone="hierarchical[embedding=16,hidden=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="hier_doc",
            backbone="hierarchical[embedding=32,hidden=32]",
            protocol="adam[steps=250,batch=32,evaluate_every=125]",
            seconds=7.2,
        ),
        "standard": TaskPreset(
            options="hier_doc[sentences=24,words=16]",
            backbone="hierarchical[embedding=32,hidden=64]",
            protocol="adam[lr=0.005,steps=2000,batch=32,evaluate_every=200,stop_at=0.995]",
            seconds=300.0,
        ),
    }
    ceiling = 1.0
    labels = tuple(TOPICS)

    def __init__(self, config: HierDocConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.evaluate = config.evaluate
        topics = [word for words in TOPICS.values() for word in words]
        noise = [f"w{number}" for number in range(config.noise)]
        self.names = ["<pad>", "<s>", "</s>", "<unk>", *ASSERTIONS, *HEDGES, *topics, *noise]
        longest = config.sentences * max(config.words, 3)
        self.sizes = Sizes((len(self.names),), len(TOPICS), longest)

    @classmethod
    def chance_of(cls, config: HierDocConfig) -> float:
        """Any one topic."""
        return 1 / len(TOPICS)

    def words(self, ids: Sequence[int]) -> list[str]:
        """Words as they are."""
        return [self.names[number] for number in ids]

    def draw(self, count: int, generator: torch.Generator) -> list[Labeled]:
        """New documents."""
        random, config = drawing(generator), self.config
        hedges = FIRST + len(ASSERTIONS)
        topics = hedges + len(HEDGES)
        noise = topics + sum(map(len, TOPICS.values()))
        per = len(TOPICS["food"])
        rows = []
        for _ in range(count):
            sentences = random.randint(config.sentences // 2, config.sentences)
            evidence, label = random.randrange(sentences), 0
            ids: list[int] = []
            segments: list[int] = []
            for number in range(sentences):
                topic = random.randrange(len(TOPICS))
                mood = hedges + random.randrange(len(HEDGES))
                if number == evidence:
                    label, mood = topic, FIRST + random.randrange(len(ASSERTIONS))
                length = random.randint(max(3, config.words // 2), config.words)
                words = random.choices(range(noise, len(self.names)), k=length - 2)
                at = random.randint(0, len(words))
                words[at:at] = [mood, topics + topic * per + random.randrange(per)]
                ids += words
                segments += [number] * length
            gold = tuple(place for place, number in enumerate(segments) if number == evidence)
            rows.append(Labeled(ids, label, segments, gold, self._shown(ids, segments)))
        return rows

    def label_scores(self, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy, macro F1, and whether the heaviest sentence is the right one."""
        found = label_scores(answers)
        match = heaviest_segment(answers)
        return (
            found
            if match is None
            else [*found, Scored(metric=TOP_SENTENCE_MATCH.name, value=match)]
        )

    def _shown(self, ids: Sequence[int], segments: Sequence[int]) -> str:
        """Words, with a stop after each sentence."""
        ends = [*(one != two for one, two in pairwise(segments)), True]
        words = zip(self.words(ids), ends, strict=True)
        return " ".join(f"{word}." if end else word for word, end in words)
