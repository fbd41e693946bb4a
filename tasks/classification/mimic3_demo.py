"""Death in hospital from the first two days of a stay: the open demo of MIMIC-III, 100 patients.

Johnson et al., 2016, "MIMIC-III, a freely accessible critical care database",
https://doi.org/10.1038/sdata.2016.35. Predicting it from sequences of codes by attention is the use
of Choi et al., 2016, "RETAIN", https://arxiv.org/abs/1608.05745, and of Rajkomar et al., 2018,
"Scalable and accurate deep learning with electronic health records",
https://arxiv.org/abs/1801.07860.

This is a demonstration: with about a hundred stays hardly any difference is significant, and the
note `interval` gives the 95 % interval of the area. Against leakage, codes of diagnoses and
procedures are read from earlier stays only, because they are assigned after discharge;
prescriptions count when they begin on the first two calendar days, and stays that end within these
are left out (`tasks.data.mimic3_demo`). Patients, not stays, are divided among the parts, those
with a death and those without apart, by a fixed draw that no seed changes.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.api.answer import Answer
from bench.api.batch import Batch, Sizes
from bench.api.config import Config
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.metric import Scored
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.classification.bags_of_words import area_baselines
from tasks.classification.labeled_texts import PARTS, POOLS_OF_EVENTS, Labeled, label_batch
from tasks.classification.read_texts import ReadRows
from tasks.data.corpus import parts_note
from tasks.data.mimic3_demo import load_mimic3_demo
from tasks.data.tables import Row
from tasks.data.words import Vocabulary
from tasks.metrics.attention_scores import ALIGNMENT_ENTROPY
from tasks.metrics.labels import (
    AUPRC,
    AUROC,
    LABEL_ACCURACY,
    label_scores,
    log_odds,
    ranking_scores,
)

SHARES = {"train": 0.5, "validation": 0.15}
"""Of the patients; the rest are the test."""
RESAMPLED = 300
"""Bootstrap samples of the interval."""
OWN = (
    ("age:70", "type:emergency", "for:sepsis", "unit:micu", "rx:norepinephrine", "rx:heparin"),
    ("age:50", "type:elective", "for:coronary", "unit:csru", "rx:aspirin", "rx:insulin"),
)
"""Invented stays."""


@dataclass(frozen=True, kw_only=True)
class Mimic3DemoConfig(Config):
    """Options of the demo."""

    least: int = 3
    """Training stays that an event needs to be known."""
    events: int = 80
    """Events of a stay that are read, the last ones."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if min(self.least, self.events) < 1:
            raise InvalidConfig(
                f"mimic3_demo: least and events must be at least 1, got {self.least}, "
                f"{self.events}."
            )


def divided(stays: Sequence[Row]) -> dict[str, list[Row]]:
    """Put each patient into one part, about as many with a death in each as its share says."""
    died = {stay["patient"] for stay in stays if stay["label"]}
    lived = {stay["patient"] for stay in stays} - died
    part_of: dict[str, str] = {}
    for group in (died, lived):
        patients = sorted(group)
        random.Random(0).shuffle(patients)
        first = round(SHARES["train"] * len(patients))
        second = first + round(SHARES["validation"] * len(patients))
        for part, some in zip(
            PARTS, (patients[:first], patients[first:second], patients[second:]), strict=True
        ):
            part_of |= dict.fromkeys(some, part)
    return {part: [s for s in stays if part_of[s["patient"]] == part] for part in PARTS}


@register(
    "task",
    "mimic3_demo",
    config=Mimic3DemoConfig,
    citation=Citation(text="Johnson et al., 2016", url="https://doi.org/10.1038/sdata.2016.35"),
)
class Mimic3Demo(ReadRows):
    """Events of the first two days of a stay, and whether the patient died in hospital."""

    family = "event sequences"
    metrics = (AUROC, AUPRC, LABEL_ACCURACY, ALIGNMENT_ENTROPY)
    comparison = POOLS_OF_EVENTS
    pipeline_check = (
        "The 100 patients are too few: the seeds of every network overlap with those of "
        "uniform attention."
    )
    presets = {
        "smoke": TaskPreset(
            options="mimic3_demo[events=20]",
            backbone="pooling[embedding=16,encoder=uni_rnn,query=last]",
            protocol="adam[steps=10,batch=8,evaluate_every=10]",
            seconds=1.0,
        ),
        "quick": TaskPreset(
            options="mimic3_demo",
            backbone="pooling[embedding=16,encoder=uni_rnn,query=last]",
            protocol="adam[steps=100,batch=16,evaluate_every=50]",
            seconds=2.0,
        ),
        "standard": TaskPreset(
            options="mimic3_demo",
            backbone="pooling[embedding=32,encoder=uni_rnn,query=last]",
            protocol="adam[lr=0.001,weight_decay=0.1,steps=300,batch=16,evaluate_every=100]",
            seconds=12.0,
        ),
    }
    needs_download = True
    data_sets = ("mimic3_demo",)
    # the terms would allow it; records of patients are not passed on all the same
    data_license = License("Open Database License 1.0 (MIMIC-III demo)", redistributable=False)
    chance = 0.5
    labels = ("survived", "died")

    def __init__(self, config: Mimic3DemoConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        table = load_mimic3_demo(data_dir)
        parts = divided(table.parts["stays"])
        known = ([*stay["events"]] for stay in parts["train"])
        self.vocabulary = Vocabulary.count(known, least=config.least)
        self.parts = {
            part: tuple(
                self._stay(stay["events"][-config.events :], stay["label"]) for stay in some
            )
            for part, some in parts.items()
        }
        longest = max(len(row.ids) for some in self.parts.values() for row in some)
        self.sizes = Sizes((len(self.vocabulary),), len(self.labels), longest)
        self.notes["data"] = table.note
        self.notes["split"] = ", ".join(
            f"{part} {len(some)} stays ({sum(stay['label'] for stay in some)} deaths) of "
            f"{len({stay['patient'] for stay in some})} patients"
            for part, some in parts.items()
        )
        self.notes["parts"] = parts_note(parts)

    def label_scores(self, answers: Sequence[Answer]) -> list[Scored]:
        """Areas and accuracy."""
        return [*ranking_scores(answers, 1), *label_scores(answers)]

    def score(self, split: Split, answers: Sequence[Answer]) -> list[Scored]:
        """The metrics; on the test also a note with the interval of the area."""
        if split == "test":
            self.notes["interval"] = interval(*log_odds(answers, 1))
        return super().score(split, answers)

    def baselines(self) -> Mapping[str, float]:
        """One answer for all, and naive Bayes over bags of events."""
        return area_baselines(self.parts["train"], self.parts["test"], len(self.vocabulary))

    def examples(self) -> Batch:
        """Invented stays."""
        rows = [self._stay(events, label) for events, label in zip(OWN, (1, 0), strict=True)]
        return label_batch(rows, self.labels)

    def _stay(self, events: Sequence[str], label: int) -> Labeled:
        return Labeled(self.vocabulary.encode(events), label, text=", ".join(events))


def interval(true: Sequence[bool], odds: Sequence[float]) -> str:
    """The 95 % interval of the area under the ROC curve, by resampling the stays."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - a second to import

    truth, said = np.asarray(true), np.asarray(odds)
    draws = np.random.default_rng(0).integers(len(truth), size=(RESAMPLED, len(truth)))
    areas = [
        roc_auc_score(truth[rows], said[rows])
        for rows in draws
        if 0 < truth[rows].sum() < len(rows)
    ]
    if not areas:
        return f"no interval: only one outcome in {len(truth)} stays"
    low, high = np.quantile(areas, (0.025, 0.975))
    return (
        f"AUROC {low:.2f} to {high:.2f} (95 %, {len(areas)} bootstrap samples) on n = {len(truth)} "
        f"stays with {int(truth.sum())} deaths: a demonstration, not a comparison"
    )
