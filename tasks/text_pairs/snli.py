"""Natural language inference on real sentences: training pairs and the official test of SNLI.

Bowman et al., 2015, "A large annotated corpus for learning natural language inference",
https://aclanthology.org/D15-1075. The test is followed by pairs that were revised by a few words so
that their label changes (Kaushik et al., 2020, https://arxiv.org/abs/1909.12434); a network that
only reads the words of the hypothesis fails there.

Deviations: the data directory has 18000 of the 550152 training pairs. The hub copy has all of them
and no revised pairs, so that their accuracy is missing there.
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
from tasks.data.snli import load_snli
from tasks.data.tables import Rows
from tasks.data.words import Vocabulary
from tasks.text_pairs.entailment import Inference, Labeled, epochs

OWN = (
    ("a man is sleeping on a bench .", "a man is playing football .", "contradiction"),
    ("two children are running in the park .", "two kids are outside .", "entailment"),
    ("a woman is cooking in a kitchen .", "a woman is cooking for her sister .", "neutral"),
)
"""Pairs written by us, words at spaces."""


@dataclass(frozen=True, kw_only=True)
class SnliConfig(Config):
    """Options of SNLI."""

    train: int = 0
    """Training pairs to use; 0 for all that there are."""
    least: Annotated[int, IntRange(1, 10)] = 2
    """Occurrences in training that a word needs to be known."""
    validate: int = 1000
    """Pairs of each validation, and minimal pairs at most."""
    test: int = 0
    """Pairs of the test, and minimal pairs at most; 0 for all."""

    def __post_init__(self) -> None:
        """Check the counts."""
        if min(self.train, self.test) < 0 or min(self.validate, self.least) < 1:
            raise InvalidConfig(
                "snli: train and test must be at least 0, validate and least at least 1, got "
                f"{self.train}, {self.test}, {self.validate}, {self.least}."
            )


@register(
    "task",
    "snli",
    config=SnliConfig,
    citation=Citation(text="Bowman et al., 2015", url="https://aclanthology.org/D15-1075"),
)
class Snli(Inference):
    """SNLI pairs in lower-case words; the test is the whole official one, 9824 pairs.

    Trained on 18000 of the 550152 official training pairs, those that the data directory has, or on
    all of the hub copy. Minimal pairs are the revised ones of the counterfactual test: 1600, of
    which validation sees other 800; the hub copy has none.
    """

    pipeline_check = (
        "At the quick size naive Bayes that reads the hypothesis alone is as good as the best"
        " network."
    )
    presets = {
        "smoke": TaskPreset(
            options="snli[train=300,validate=32,test=64]",
            backbone="pair[embedding=16,hidden=16]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=2.0,
        ),
        "quick": TaskPreset(
            options="snli",
            backbone="pair[embedding=64,hidden=64,dropout=0.2]",
            protocol="adam[lr=0.001,steps=800,batch=64,evaluate_every=200]",
            seconds=16.1,
        ),
        "standard": TaskPreset(
            options="snli",
            backbone="pair[embedding=128,hidden=128,dropout=0.2]",
            protocol="adam[lr=0.001,steps=4000,batch=64,evaluate_every=400]",
            seconds=120.0,
        ),
    }
    comparison = (
        Entry(variant="decomposable"),
        Entry(variant="dot"),
        Entry(variant="additive"),
        Entry(variant="sparsemax"),
        Entry(
            variant="decomposable",
            backbone="pair[embedding=64,hidden=64,dropout=0.2,encoder=birnn[cell=lstm]]",
        ),
        Entry(
            variant="scaled_dot",
            backbone="pair[embedding=64,hidden=64,dropout=0.2,encoder=transformer]",
        ),
    )
    published_results = (
        PublishedResult(
            what="decomposable attention, 200 units, GloVe, all 550k training pairs",
            metric="label_accuracy",
            value=0.863,
            text="Parikh et al., 2016",
            url="https://arxiv.org/abs/1606.01933",
            where="table 2",
            differs=(
                "All 550152 training pairs, 30 times those of the data directory, and pretrained "
                "word vectors."
            ),
        ),
        PublishedResult(
            what="the same with intra-sentence attention",
            metric="label_accuracy",
            value=0.868,
            text="Parikh et al., 2016",
            url="https://arxiv.org/abs/1606.01933",
            where="table 2",
            differs=(
                "All 550152 training pairs, 30 times those of the data directory, and pretrained "
                "word vectors."
            ),
        ),
    )
    needs_download = True
    data_sets = ("snli",)
    data_license = License("CC BY-SA 4.0 (SNLI); revised pairs Apache-2.0", redistributable=True)

    def __init__(self, config: SnliConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        table = load_snli(data_dir)
        self.notes["data"] = table.note
        self.note_fewer("train", config.train, len(table.parts["train"]))
        train = table.parts["train"][: config.train or None]
        self.words = Vocabulary.count(
            (row[field].split() for row in train for field in ("premise", "hypothesis")),
            least=config.least,
        )
        tests = {"validation": config.validate, "test": config.test or None}
        self._rows = {"train": self._encode(train)}
        self._changed = {}
        for split, count in tests.items():
            self.note_fewer(split, count or 0, len(table.parts[split]))
            self._rows[split] = self._encode(table.parts[split][:count])
            revised = table.parts.get(f"counterfactual_{split}", ())
            self._changed[split] = self._encode(revised[:count])
        if not self._changed["test"]:
            self.notes["minimal pairs"] = "none: the hub copy has no revised pairs"
        everything = [*self._rows.values(), *self._changed.values()]
        longest = max(
            max(len(row.premise), len(row.hypothesis)) for rows in everything for row in rows
        )
        self.sizes = Sizes((len(self.words),) * 2, 3, longest)

    def rows(self, split: Split) -> Sequence[Labeled]:
        """Pairs of a split."""
        return self._rows[split]

    def changed(self, split: Split) -> Sequence[Labeled]:
        """Revised pairs; none of them is trained on."""
        return self._changed[split]

    def training(self, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Epochs of length-bucketed batches."""
        return epochs(self.rows("train"), batch_size, generator)

    def examples(self) -> Batch:
        """Three pairs written by us."""
        return self.written(OWN)

    def _encode(self, rows: Rows) -> list[Labeled]:
        return [
            Labeled(
                self.words.encode(row["premise"].split()),
                self.words.encode(row["hypothesis"].split()),
                row["label"],
            )
            for row in rows
        ]
