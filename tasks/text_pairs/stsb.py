"""Similarity of two real sentences in meaning, from 0 to 5: the benchmark STS-B.

Cer et al., 2017, "SemEval-2017 task 1: semantic textual similarity multilingual and crosslingual
focused evaluation", https://aclanthology.org/S17-2001. Sentences of news, captions and forums.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch, Sizes
from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.stsb import load_stsb
from tasks.data.tables import Rows
from tasks.data.words import Vocabulary, tokenize
from tasks.text_pairs.sentence_similarity import (
    ALIGNERS,
    SPEARMAN,
    Graded,
    Similarity,
    graded_epochs,
)

OWN = (
    ("a man is playing a guitar .", "a person plays an instrument .", 3.8),
    ("two dogs run in the snow .", "the market fell on monday .", 0.0),
)
"""Pairs written by us; those of the data have the terms of their sources."""


@dataclass(frozen=True, kw_only=True)
class StsbConfig(Config):
    """Options of STS-B."""

    train: int = 0
    """Training pairs to use; 0 for all."""
    least: Annotated[int, IntRange(1, 10)] = 2
    """Occurrences in training that a word needs to be known."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if self.train < 0 or self.least < 1:
            raise InvalidConfig(
                f"stsb: train must be at least 0 and least at least 1, got {self.train} and "
                f"{self.least}."
            )


@register(
    "task",
    "stsb",
    config=StsbConfig,
    citation=Citation(text="Cer et al., 2017", url="https://aclanthology.org/S17-2001"),
)
class Stsb(Similarity):
    """Pairs in lower-case words; its data must be fetched first.

    Word vectors are learned from 5749 pairs alone, so correlations are far below those of
    pretrained models.
    """

    published_results = (
        PublishedResult(
            what="cosine of mean GloVe vectors",
            metric=SPEARMAN.name,
            value=0.5802,
            text="Reimers & Gurevych, 2019, sentence-transformers",
            url="https://github.com/UKPLab/sentence-transformers",
            where="docs/pretrained-models/sts-models.md",
            differs="Word vectors of billions of words, nothing learned from the graded pairs.",
        ),
        PublishedResult(
            what="cosine of InferSent vectors",
            metric=SPEARMAN.name,
            value=0.6803,
            text="Reimers & Gurevych, 2019, sentence-transformers",
            url="https://github.com/UKPLab/sentence-transformers",
            where="docs/pretrained-models/sts-models.md",
            differs=(
                "GloVe vectors and an encoder learned on inference pairs, nothing learned from "
                "the graded pairs."
            ),
        ),
        PublishedResult(
            what="Sentence-BERT base, learned on inference pairs, then on the graded pairs",
            metric=SPEARMAN.name,
            value=0.8514,
            text="Reimers & Gurevych, 2019, sentence-transformers",
            url="https://github.com/UKPLab/sentence-transformers",
            where="docs/pretrained-models/sts-models.md",
            differs=(
                "Pretrained network and inference pairs, ours learns from the 5749 graded pairs "
                "alone."
            ),
        ),
    )
    presets = {
        "smoke": TaskPreset(
            options="stsb[train=300]",
            backbone="pair[embedding=16,hidden=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="stsb",
            backbone="pair[embedding=64,hidden=64,dropout=0.2]",
            protocol="adam[lr=0.002,steps=600,batch=64,evaluate_every=150]",
            seconds=15.0,
        ),
        "standard": TaskPreset(
            options="stsb",
            backbone="pair[embedding=128,hidden=128,dropout=0.2]",
            protocol="adam[lr=0.001,steps=2000,batch=64,evaluate_every=200]",
            seconds=100.0,
        ),
    }
    comparison = (
        *ALIGNERS,
        Entry(
            variant="decomposable",
            backbone="pair[embedding=64,hidden=64,dropout=0.2,encoder=birnn]",
        ),
    )
    needs_download = True
    data_sets = ("stsb",)
    written_example = (f"{OWN[0][0]} | {OWN[0][1]}", f"{OWN[0][2]:.3g}")
    data_license = License(
        "no license stated; sentences have the terms of their sources (STS-B)",
        redistributable=False,
    )

    def __init__(self, config: StsbConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        table = load_stsb(data_dir)
        self.notes["data"] = table.note
        self.note_fewer("train", config.train, len(table.parts["train"]))
        train = table.parts["train"][: config.train or None]
        self.words = Vocabulary.count(
            (tokenize(row[field]) for row in train for field in ("sentence1", "sentence2")),
            least=config.least,
        )
        self._rows = {
            "train": self._encode(train),
            "validation": self._encode(table.parts["validation"]),
            "test": self._encode(table.parts["test"]),
        }
        everything = [row for rows in self._rows.values() for row in rows]
        longest = max(max(len(row.first), len(row.second)) for row in everything)
        self.sizes = Sizes((len(self.words),) * 2, 1, longest)

    def rows(self, split: Split) -> Sequence[Graded]:
        """Pairs of a split."""
        return self._rows[split]

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches."""
        return graded_epochs(self.rows("train"), batch_size, generator)

    def examples(self) -> Batch:
        """Pairs written by us."""
        return self.written(OWN)

    def _encode(self, rows: Rows) -> list[Graded]:
        return [
            Graded(
                self.words.encode(tokenize(row["sentence1"])),
                self.words.encode(tokenize(row["sentence2"])),
                row["score"],
            )
            for row in rows
        ]
