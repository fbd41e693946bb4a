"""Sentiment of whole film reviews, read as sentences of words: IMDB.

Maas et al., 2011, "Learning word vectors for sentiment analysis",
https://aclanthology.org/P11-1015; read in two levels as by Yang et al., 2016, "Hierarchical
attention networks for document classification", https://aclanthology.org/N16-1174.

Deviations: a third of the training part and a fifth of the test, from the hub copy all of them (the
first ones after a fixed shuffle, where options ask for some); a document is the first words of
each of its first sentences (the options `sentences` and `words`), for time. Nothing of the rest is
read. Reviews that validation or test hold too are not trained on.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from bench.api.comparison import Entry, PublishedResult
from bench.api.config import IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.classification.read_texts import ReadTextConfig, ReadTextTask
from tasks.data.imdb import load_imdb, sentences
from tasks.data.words import tokenize
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY
from tasks.metrics.labels import LABEL_ACCURACY, MACRO_F1

FLAT = "pooling[embedding=32,encoder=birnn]"


@dataclass(frozen=True, kw_only=True)
class ImdbConfig(ReadTextConfig):
    """Options of film reviews."""

    named: ClassVar[str] = "imdb"
    sentences: Annotated[int, IntRange(1, 60, log=True)] = 10
    """Sentences of each review that are read, the first ones."""
    words: Annotated[int, IntRange(4, 100, log=True)] = 20
    """Words of each sentence that are read, the first ones."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        if min(self.sentences, self.words) < 1:
            raise InvalidConfig(
                f"imdb: sentences and words must be at least 1, got {self.sentences}, {self.words}."
            )


@register(
    "task",
    "imdb",
    config=ImdbConfig,
    citation=Citation(text="Maas et al., 2011", url="https://aclanthology.org/P11-1015"),
)
class Imdb(ReadTextTask):
    """Reviews as sentences, negative or positive; `quick` is tested on the first 1000 of 5000."""

    family = "long documents"
    metrics = (LABEL_ACCURACY, MACRO_F1, ALIGNMENT_ENTROPY)
    comparison = (
        Entry(variant="han"),
        Entry(variant="feed_forward"),
        Entry(variant="additive"),
        Entry(variant="max_pooling"),
        Entry(variant="last_state"),
        Entry(variant="context_vector", backbone=FLAT),
    )
    pipeline_check = (
        "At the quick size naive Bayes over words is better in every seed, and the seeds of "
        "every network overlap with those of uniform attention."
    )
    presets = {
        "smoke": TaskPreset(
            options="imdb[train=100,validate=20,test=20,sentences=3,words=6]",
            backbone="hierarchical[embedding=16,hidden=16]",
            protocol="adam[steps=5,batch=8,evaluate_every=5]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="imdb[validate=300,test=1000]",
            backbone="hierarchical[embedding=32,hidden=32]",
            protocol="adam[steps=200,batch=32,evaluate_every=100]",
            seconds=7.6,
        ),
        "standard": TaskPreset(
            options="imdb[sentences=25,words=40,vocab=20000]",
            backbone="hierarchical[embedding=64,hidden=64]",
            protocol="adam[lr=0.001,steps=1500,batch=32,evaluate_every=250]",
            seconds=900.0,
        ),
    }
    needs_download = True
    data_sets = ("imdb",)
    data_license = License("no license stated (Large Movie Review Dataset)", redistributable=False)
    published_results = (
        PublishedResult(
            what="bag of words and learned vectors, linear classifier",
            metric=LABEL_ACCURACY.name,
            value=0.8889,
            text="Maas et al., 2011",
            url="https://aclanthology.org/P11-1015",
            where="table 1, full model, additional unlabeled, bag of words",
            differs=(
                "Non-neural; trained on 25000 whole reviews and 50000 unlabeled ones, tested on "
                "25000; ours has a third and a fifth of them, and reads their first words alone."
            ),
        ),
    )
    chance = 0.5
    labels = ("negative", "positive")
    own = (
        (
            "We saw it on a rainy Sunday with nobody else in the room. "
            "The story is about two brothers who inherit a lighthouse. "
            "Nothing much happens in the first half hour. "
            "But the ending is wonderful, warm and beautifully acted. "
            "The credits list a great many sheep.",
            1,
        ),
        (
            "My sister chose this one because of the poster. "
            "It was filmed in three countries. "
            "The script is a boring mess and the acting is awful. "
            "There is a dog in it, and a boat.",
            0,
        ),
    )

    def __init__(self, config: ImdbConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config

        def cut(text: str) -> list[list[str]]:
            kept = sentences(text)[: config.sentences]
            return [tokenize(sentence)[: config.words] for sentence in kept]

        self.take(load_imdb(data_dir), cut, {"set": "imdb"})
