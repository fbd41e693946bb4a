"""Sentiment of film reviews, a sentence each: SST-2 with the labels of its test.

Socher et al., 2013, "Recursive deep models for semantic compositionality over a sentiment
treebank", https://aclanthology.org/D13-1170, section 5.

Deviations: whole sentences alone, no phrases of the treebank, and no vectors from elsewhere.
Sentences that validation or test hold too are not trained on.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.api.comparison import Entry, PublishedResult
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import TaskPreset
from tasks.classification.read_texts import ReadTextConfig, ReadTextTask
from tasks.data.sst2_sentences import load_sst2_sentences
from tasks.data.words import tokenize
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY
from tasks.metrics.labels import LABEL_ACCURACY, MACRO_F1


@dataclass(frozen=True, kw_only=True)
class Sst2Config(ReadTextConfig):
    """Options of sentence sentiment."""

    named: ClassVar[str] = "sst2"
    validate: int = 0
    """Sentences of validation, the first ones; 0 for all 872."""


def one_sentence(text: str) -> list[list[str]]:
    """A text as one sentence of words."""
    return [tokenize(text)]


@register(
    "task",
    "sst2",
    config=Sst2Config,
    citation=Citation(text="Socher et al., 2013", url="https://aclanthology.org/D13-1170"),
)
class Sst2(ReadTextTask):
    """Sentences of film reviews, negative or positive; all 1821 of the test by default."""

    family = "text classification"
    metrics = (LABEL_ACCURACY, MACRO_F1, ALIGNMENT_ENTROPY)
    comparison = (
        Entry(variant="context_vector"),
        Entry(variant="additive"),
        Entry(variant="multi_dimensional"),
        Entry(variant="max_pooling"),
        Entry(variant="last_state", backbone="pooling[embedding=64,encoder=uni_rnn]"),
        Entry(
            variant="context_vector",
            backbone="pooling[embedding=64,encoder=transformer[layers=1]]",
        ),
    )
    pipeline_check = (
        "At the quick size naive Bayes over words is better in every seed, and the seeds of "
        "every network overlap with those of uniform attention."
    )
    presets = {
        "smoke": TaskPreset(
            options="sst2[train=200,validate=40,test=40]",
            backbone="pooling[embedding=16,encoder=birnn]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="sst2",
            backbone="pooling[embedding=64,encoder=birnn]",
            protocol="adam[steps=500,batch=32,evaluate_every=250]",
            seconds=11.0,
        ),
        "standard": TaskPreset(
            options="sst2",
            backbone="pooling[embedding=128,encoder=birnn]",
            protocol="adam[lr=0.001,steps=2000,batch=32,evaluate_every=200]",
            seconds=150.0,
        ),
    }
    needs_download = True
    data_sets = ("sst2_sentences",)
    data_license = License("no license stated (Stanford Sentiment Treebank)", redistributable=False)
    published_results = (
        PublishedResult(
            what="naive Bayes over words, whole sentences",
            metric=LABEL_ACCURACY.name,
            value=0.818,
            text="Socher et al., 2013",
            url="https://aclanthology.org/D13-1170",
            where="table 1, NB, positive/negative, root",
            differs="Trained on all phrases of the treebank, tokenized as published.",
        ),
        PublishedResult(
            what="recursive neural tensor network, whole sentences",
            metric=LABEL_ACCURACY.name,
            value=0.854,
            text="Socher et al., 2013",
            url="https://aclanthology.org/D13-1170",
            where="table 1, RNTN, positive/negative, root",
            differs="Trained on all phrases and parse trees of the treebank.",
        ),
    )
    chance = 0.5
    labels = ("negative", "positive")
    own = (
        ("the cast is charming and the songs are a joy , but the jokes fall flat", 1),
        ("i wanted to like it , and instead i found a dull and clumsy mess", 0),
        ("not a bad way to spend an evening", 1),
    )

    def __init__(self, config: Sst2Config, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.take(load_sst2_sentences(data_dir), one_sentence, {"set": "sst2"})
