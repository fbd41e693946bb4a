"""Progress of diabetes from ten measurements: kernel regression on real data.

Efron, Hastie, Johnstone & Tibshirani, 2004, "Least angle regression",
https://arxiv.org/abs/math/0406456, section 1 (the data, 442 patients, as scikit-learn ships them).

Deviations: 300 patients are for training and 71 each for validation and test, drawn once.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch

from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.license import License
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.corpus import parts_note
from tasks.regression.kernel_task import Points, RegressionTask

TRAIN, VALIDATION = 300, 71
"""Patients of the first two parts; the rest are the test."""
FEATURES = "kernel_regression[features=16]"


@dataclass(frozen=True, kw_only=True)
class KernelDiabetesConfig(Config):
    """Options of the diabetes data."""

    train: Annotated[int, IntRange(10, TRAIN, log=True)] = TRAIN
    """Patients to learn from."""

    def __post_init__(self) -> None:
        """Check the number."""
        if not 2 <= self.train <= TRAIN:
            raise InvalidConfig(
                f"kernel_diabetes: train must lie between 2 and {TRAIN}, got {self.train}."
            )


@register(
    "task",
    "kernel_diabetes",
    config=KernelDiabetesConfig,
    citation=Citation(text="Efron et al., 2004", url="https://arxiv.org/abs/math/0406456"),
)
class KernelDiabetes(RegressionTask):
    """Age, sex, body mass, blood pressure and six serum values; progress after a year."""

    pipeline_check = (
        "At the quick size linear regression is better than every network in every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="kernel_diabetes[train=40]",
            backbone="kernel_regression",
            protocol="adam[lr=0.03,steps=20,batch=16,evaluate_every=10]",
            seconds=0.5,
        ),
        "quick": TaskPreset(
            options="kernel_diabetes",
            backbone="kernel_regression",
            protocol="adam[lr=0.03,steps=300,batch=32,evaluate_every=50]",
            seconds=2.3,
        ),
        "standard": TaskPreset(
            options="kernel_diabetes",
            backbone="kernel_regression",
            protocol="adam[lr=0.01,steps=3000,batch=64,evaluate_every=100]",
            seconds=60.0,
        ),
    }
    margin = 300.0
    """A twentieth of the variance of the target."""
    comparison = (
        Entry(variant="nadaraya_watson"),
        Entry(variant="nadaraya_watson[ard=true]"),
        Entry(variant="nadaraya_watson[beta=0.1,learn=false]"),
        Entry(variant="nadaraya_watson[beta=1,learn=false]"),
        Entry(variant="nadaraya_watson[beta=10,learn=false]"),
        Entry(variant="additive"),
        Entry(variant="scaled_dot", backbone=FEATURES),
    )
    data_license = License(
        "no license stated; shipped with scikit-learn (BSD-3-Clause)", redistributable=False
    )

    def __init__(
        self, config: KernelDiabetesConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        from sklearn.datasets import load_diabetes  # noqa: PLC0415 - a second to import

        data = load_diabetes(scaled=False)
        x = torch.from_numpy(data.data).float()
        y = torch.from_numpy(data.target).float()
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
        ends = {"train": (0, config.train), "validation": (TRAIN, TRAIN + VALIDATION)}
        ends["test"] = (TRAIN + VALIDATION, len(y))
        self.parts = {
            part: Points(x[order[start:end]], y[order[start:end]])
            for part, (start, end) in ends.items()
        }
        self.notes["data"] = f"scikit-learn's load_diabetes, {len(y)} rows"
        self.notes["parts"] = parts_note(
            {
                part: torch.cat((points.x, points.y.unsqueeze(1)), 1).tolist()
                for part, points in self.parts.items()
            }
        )
        self.begin(self.parts["train"])

    def held_out(self, split: Split) -> Points:
        """Patients of a part."""
        return self.parts[split]

    def examples(self) -> Batch:
        """An invented patient: all measurements at the mean of the training part."""
        batch = self._asked(Points(self.center[None], self.mean[None]))
        return replace(batch, names=("a patient with the mean of every measurement",))
