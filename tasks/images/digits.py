"""Classify small images of handwritten digits, read patch by patch.

Alpaydin & Kaynak, 1998, "Optical recognition of handwritten digits", UCI Machine Learning
Repository, https://doi.org/10.24432/C50P49. All 500 test images are scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.batch import Batch
from bench.api.comparison import Entry, PublishedResult
from bench.api.config import Choices, Config
from bench.api.errors import InvalidConfig
from bench.api.registry import register
from bench.api.task import Split, TaskPreset
from tasks.data.digits import (
    DIGITS_CITATION,
    DIGITS_LICENSE,
    DIGITS_NOTE,
    SIDE,
    digits_parts,
    load_digits,
)
from tasks.images.image_task import (
    PICTURE_METRICS,
    LabeledPictures,
    labeled,
    nearest_neighbors,
    of_part,
    picture_text,
)
from tasks.metrics.labels import LABEL_ACCURACY, majority

POOLED = "pooling[embedding=32,encoder=grid_cnn[layers=1]]"
GRID = "image_classifier[width=32,layers=1]"


@dataclass(frozen=True, kw_only=True)
class DigitsConfig(Config):
    """Options of the digits."""

    patch: Annotated[int, Choices((1, 2, 4))] = 1
    """Pixels on each side of a position."""

    def __post_init__(self) -> None:
        """Check that patches tile the image."""
        if self.patch < 1 or SIDE % self.patch:
            raise InvalidConfig(f"digits: patch must divide {SIDE}, got {self.patch}.")


@register("task", "digits", config=DigitsConfig, citation=DIGITS_CITATION)
class DigitsTask(LabeledPictures):
    """Images of 8 by 8 pixels, ten labels.

    >>> task = DigitsTask(DigitsConfig(patch=2), seed=0)
    >>> batch = task.evaluation("test")[0]
    >>> batch.sources[0].grid, tuple(batch.sources[0].frames.shape[1:])
    ((4, 4), (16, 4))
    """

    family = "image classification"
    metrics = PICTURE_METRICS
    data_license = DIGITS_LICENSE
    comparison = (
        Entry(variant="additive"),
        Entry(variant="context_vector"),
        Entry(variant="mha"),
        Entry(variant="max_pooling"),
        Entry(variant="sagan", backbone=GRID),
        Entry(variant="uniform", backbone=GRID),
    )
    published_results = (
        PublishedResult(
            what="nearest neighbor, Euclidean",
            metric=LABEL_ACCURACY.name,
            value=0.98,
            text="Alpaydin & Kaynak, 1998",
            url="https://doi.org/10.24432/C50P49",
            where="optdigits.names, accuracy on the testing set",
            differs=(
                "3823 training images of other writers and all 1797 of the test; ours cuts "
                "those 1797 into 1000, 297 and 500."
            ),
        ),
        PublishedResult(
            what="3 nearest neighbors, Euclidean",
            metric=LABEL_ACCURACY.name,
            value=0.9783,
            text="Alpaydin & Kaynak, 1998",
            url="https://doi.org/10.24432/C50P49",
            where="optdigits.names, accuracy on the testing set",
            differs=(
                "3823 training images of other writers and all 1797 of the test; ours cuts "
                "those 1797 into 1000, 297 and 500."
            ),
        ),
    )
    pipeline_check = (
        "At the quick size the nearest pixels of training are better than every network in "
        "every seed."
    )
    presets = {
        "smoke": TaskPreset(
            options="digits[patch=2]",
            backbone="pooling[embedding=16,encoder=grid_cnn[layers=1]]",
            protocol="adam[steps=20,batch=16,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="digits",
            backbone=POOLED,
            protocol="adam[lr=0.01,steps=1000,batch=32,evaluate_every=250]",
            seconds=5.9,
        ),
        "standard": TaskPreset(
            options="digits",
            backbone="pooling[embedding=32,encoder=grid_cnn]",
            protocol="adam[lr=0.003,steps=3000,batch=64,evaluate_every=300]",
            seconds=200.0,
        ),
    }

    def __init__(self, config: DigitsConfig, seed: int, data_dir: Path | None = None) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.notes["data"] = DIGITS_NOTE
        self.notes["parts"] = digits_parts()
        self.prepare((SIDE // config.patch) ** 2, config.patch)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """All images of a part."""
        everything = torch.arange(len(load_digits(split).labels))
        return [self.composed(split, chosen, torch.Generator()) for chosen in everything.split(256)]

    def composed(self, part: Split, chosen: Int[Tensor, " B"], generator: torch.Generator) -> Batch:
        """The images as they are."""
        images, labels = of_part(part, chosen)
        return labeled(picture_text(images, self.config.patch), labels)

    def baselines(self) -> Mapping[str, float]:
        """The most frequent digit, and a vote of the three nearest training images."""
        train, test = load_digits("train"), load_digits("test")
        given, asked = (part.labels.tolist() for part in (train, test))
        near = nearest_neighbors((train.images.flatten(1), given), (test.images.flatten(1), asked))
        return {"majority": majority(given, asked), "3 nearest neighbors": near}

    def examples(self) -> Batch | None:
        """Three images of the test."""
        return self.shown(self.composed("test", torch.tensor([0, 1, 2]), torch.Generator()))
