"""Classify the topic of a text that mentions several topics and negates all but one.

A text is noise with a few topic words in it; each but one has `not` right before it, and the label
is the topic of the remaining one. A bag of words shows which topics are mentioned, but not which
one is meant. The position of the evidence is known, so attention can be compared with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.answer import Answer
from bench.api.batch import Sizes
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.classification.drawn_texts import DrawnTextTask
from tasks.classification.labeled_texts import Labeled
from tasks.data.drawing import drawing
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY, ALIGNMENT_MATCH
from tasks.metrics.labels import LABEL_ACCURACY, MACRO_F1, label_scores

TOPICS = {
    "weather": ("rain", "snow", "storm", "frost"),
    "food": ("bread", "soup", "apple", "cheese"),
    "sport": ("tennis", "rowing", "chess", "hockey"),
    "music": ("violin", "opera", "drum", "choir"),
}
DENIAL, FIRST = 4, 5


@dataclass(frozen=True, kw_only=True)
class KeywordClsConfig(Config):
    """Options of the topic task."""

    length: Annotated[int, IntRange(12, 512, log=True)] = 80
    """Longest text (tokens); the shortest has half as many."""
    decoys: Annotated[int, IntRange(0, 3)] = 2
    """Topics that are negated in each text."""
    noise: Annotated[int, IntRange(2, 5000, log=True)] = 2000
    """Noise words."""
    evaluate: int = 512
    """Texts of validation, and of the test."""

    def __post_init__(self) -> None:
        """Check that everything fits."""
        if not 0 <= self.decoys < len(TOPICS):
            raise InvalidConfig(f"keyword_cls: 0 <= decoys < {len(TOPICS)}, got {self.decoys}.")
        if self.length < 12 or min(self.noise, self.evaluate) < 1:
            raise InvalidConfig(
                "keyword_cls: length must be at least 12, noise and evaluate at least 1, got "
                f"{self.length}, {self.noise} and {self.evaluate}."
            )


@register(
    "task",
    "keyword_cls",
    config=KeywordClsConfig,
    citation=Citation(
        text="Galassi et al., 2021", url="https://arxiv.org/abs/1902.02181", where="section 1"
    ),
)
class KeywordCls(DrawnTextTask):
    """Noise, negated topic words, and one that decides the label.

    >>> task = KeywordCls(KeywordClsConfig(evaluate=1, length=12), seed=0)
    >>> (batch,) = task.evaluation("validation")
    >>> position = int(batch.gold[0, 0].argmax())
    >>> word = task.tokens(batch.sources[0].tokens[0].tolist(), source=True)[position]
    >>> word in TOPICS[batch.references[0]]
    True
    """

    family = "text classification"
    metrics = (LABEL_ACCURACY, MACRO_F1, ALIGNMENT_MATCH, ALIGNMENT_ENTROPY)
    capabilities = frozenset({"gold_alignment"})
    comparison = (
        Entry(variant="context_vector"),
        Entry(variant="feed_forward"),
        Entry(variant="additive"),
        Entry(variant="sparsemax"),
        Entry(variant="max_pooling"),
        Entry(variant="last_state", backbone="pooling[embedding=32,encoder=uni_rnn]"),
    )
    presets = {
        "smoke": TaskPreset(
            options="keyword_cls[length=12,noise=20,evaluate=64]",
            backbone="pooling[embedding=16,encoder=birnn]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="keyword_cls",
            backbone="pooling[embedding=32,encoder=cnn]",
            protocol="adam[steps=300,batch=32,evaluate_every=150]",
            seconds=5.0,
        ),
        "standard": TaskPreset(
            options="keyword_cls[length=160]",
            backbone="pooling[embedding=64,encoder=birnn]",
            protocol="adam[steps=3000,batch=64,evaluate_every=300,stop_at=0.995]",
            seconds=200.0,
        ),
    }
    ceiling = 1.0
    labels = tuple(TOPICS)

    def __init__(self, config: KeywordClsConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.evaluate = config.evaluate
        topics = [word for words in TOPICS.values() for word in words]
        noise = [f"w{number}" for number in range(config.noise)]
        self.names = ["<pad>", "<s>", "</s>", "<unk>", "not", *topics, *noise]
        self.sizes = Sizes((len(self.names),), len(TOPICS), config.length)

    @classmethod
    def chance_of(cls, config: KeywordClsConfig) -> float:
        """Any one topic."""
        return 1 / len(TOPICS)

    def words(self, ids: Sequence[int]) -> list[str]:
        """Words as they are."""
        return [self.names[number] for number in ids]

    def draw(self, count: int, generator: torch.Generator) -> list[Labeled]:
        """New texts."""
        random, per = drawing(generator), len(TOPICS["food"])
        noise = range(FIRST + len(TOPICS) * per, len(self.names))
        rows = []
        for _ in range(count):
            length = random.randint(self.config.length // 2, self.config.length)
            topics = random.sample(range(len(TOPICS)), self.config.decoys + 1)
            keys = [[FIRST + topic * per + random.randrange(per)] for topic in topics]
            spans = [keys[0], *([DENIAL, *key] for key in keys[1:])]
            filler = length - sum(map(len, spans))
            pieces = [[word] for word in random.choices(noise, k=filler)] + spans
            random.shuffle(pieces)
            ids = [word for piece in pieces for word in piece]
            gold = ids.index(keys[0][0])
            rows.append(Labeled(ids, topics[0], gold=(gold,), text=" ".join(self.words(ids))))
        return rows

    def label_scores(self, answers: Sequence[Answer]) -> list[Scored]:
        """Accuracy and macro F1."""
        return label_scores(answers)
