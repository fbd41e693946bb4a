"""A digit somewhere on a larger canvas, among pieces of other digits.

Mnih et al., 2014, "Recurrent models of visual attention", https://arxiv.org/abs/1406.6247, section
4.1 (cluttered translated MNIST).

Deviations: digits of scikit-learn (8 by 8 pixels) on 16 by 16 pixels, not MNIST on 60 by 60; pieces
of 4 by 4 pixels, not 8 by 8, which never lie over the digit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.batch import Batch
from bench.api.comparison import Entry
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.task import Split, TaskPreset
from tasks.data.digits import DIGITS_LICENSE, DIGITS_NOTE, SIDE, digits_parts, load_digits
from tasks.images.image_task import (
    POINTED_METRICS,
    LabeledPictures,
    cover,
    flat_pixels,
    labeled,
    nearest_neighbors,
    of_part,
    paste,
    picture_text,
)
from tasks.metrics.labels import majority

PIECE = 4
"""Pixels on each side of a distracting piece."""
GRID = "image_classifier[width=32,layers=2]"
SHOWN = 20140624
"""Seed of the pictures that are shown, whatever the seed of a cell."""


@dataclass(frozen=True, kw_only=True)
class DigitsClutteredConfig(Config):
    """Options of the cluttered digits."""

    canvas: Annotated[int, Choices((16, 20, 24, 32))] = 16
    """Pixels on each side of the canvas."""
    pieces: Annotated[int, IntRange(0, 32)] = 8
    """Distracting pieces."""
    patch: Annotated[int, Choices((2, 4))] = 2
    """Pixels on each side of a position."""

    def __post_init__(self) -> None:
        """Check that the digit fits and patches tile the canvas."""
        if self.patch < 1 or self.canvas % self.patch or self.canvas < SIDE + 2 * PIECE:
            raise InvalidConfig(
                f"digits_cluttered: canvas must be at least {SIDE + 2 * PIECE} and a multiple of "
                f"patch, got {self.canvas} and {self.patch}."
            )
        if self.pieces < 0:
            raise InvalidConfig(f"digits_cluttered: pieces must be >= 0, got {self.pieces}.")


@register(
    "task",
    "digits_cluttered",
    config=DigitsClutteredConfig,
    citation=Citation(
        text="Mnih et al., 2014", url="https://arxiv.org/abs/1406.6247", where="section 4.1"
    ),
)
class DigitsCluttered(LabeledPictures):
    """One digit in four times its area; gold are the positions that it covers.

    >>> task = DigitsCluttered(DigitsClutteredConfig(pieces=0), seed=0)
    >>> batch = task.evaluation("test")[0]
    >>> ink = batch.sources[0].frames[0].sum(-1) > 0
    >>> bool((batch.gold[0, 0][ink] > 0).all())
    True
    """

    family = "image classification"
    metrics = POINTED_METRICS
    capabilities = frozenset({"grid", "gold_alignment"})
    data_license = DIGITS_LICENSE
    comparison = (
        Entry(variant="additive"),
        Entry(variant="mha"),
        Entry(variant="max_pooling"),
        Entry(variant="sparsemax"),
        Entry(variant="sagan", backbone=GRID),
        Entry(variant="uniform", backbone=GRID),
    )
    presets = {
        "smoke": TaskPreset(
            options="digits_cluttered[patch=4]",
            backbone="pooling[embedding=16,encoder=grid_cnn[layers=1]]",
            protocol="adam[steps=10,batch=16,evaluate_every=10]",
            seconds=1.5,
        ),
        "quick": TaskPreset(
            options="digits_cluttered",
            backbone="pooling[embedding=32,encoder=grid_cnn[layers=3]]",
            protocol="adam[lr=0.003,steps=800,batch=32,evaluate_every=400]",
            seconds=7.9,
        ),
        "standard": TaskPreset(
            options="digits_cluttered[canvas=20]",
            backbone="pooling[embedding=48,encoder=grid_cnn[layers=3]]",
            protocol="adam[lr=0.003,steps=4000,batch=64,evaluate_every=400]",
            seconds=300.0,
        ),
    }
    reads = "a digit among pieces"

    def __init__(
        self, config: DigitsClutteredConfig, seed: int, data_dir: Path | None = None
    ) -> None:
        super().__init__(config, seed, data_dir)
        self.config = config
        self.notes["data"] = DIGITS_NOTE
        self.notes["parts"] = digits_parts()
        self.prepare((config.canvas // config.patch) ** 2, config.patch)

    def evaluation(self, split: Split) -> Sequence[Batch]:
        """Every image of a part once, each on its own canvas."""
        generator = self.seeded(split)
        everything = torch.arange(len(load_digits(split).labels))
        return [self.composed(split, chosen, generator) for chosen in everything.split(128)]

    def composed(self, part: Split, chosen: Int[Tensor, " B"], generator: torch.Generator) -> Batch:
        """Each image at a random position, among pieces of other images of the same part."""
        images, labels = of_part(part, chosen)
        canvas, corners = self._canvas(part, len(chosen), generator)
        for row, (top, left) in enumerate(corners.tolist()):
            canvas[row, top : top + SIDE, left : left + SIDE] = 0
        paste(canvas, images, corners)
        gold = cover(corners, SIDE, self.config.canvas, self.config.patch)
        return labeled(picture_text(canvas, self.config.patch), labels, gold)

    def baselines(self) -> Mapping[str, float]:
        """The most frequent digit, and a vote of the three nearest of 2000 training pictures."""
        generator = torch.Generator().manual_seed(self.seed)
        given = [
            self.composed("train", torch.randperm(1000, generator=generator), generator)
            for _ in range(2)
        ]
        asked = self.evaluation("test")
        train, test = ((flat_pixels(part), _labels(part)) for part in (given, asked))
        return {
            "majority": majority(train[1], test[1]),
            "3 nearest neighbors": nearest_neighbors(train, test),
        }

    def examples(self) -> Batch | None:
        """Three images of the test, the same for every seed."""
        generator = torch.Generator().manual_seed(SHOWN)
        return self.shown(self.composed("test", torch.tensor([0, 1, 2]), generator))

    def _canvas(
        self, part: Split, rows: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "B H W"], Int[Tensor, "B 2"]]:
        """Canvases with pieces, and a corner for the digit of each."""
        others = load_digits(part).images
        size = self.config.canvas
        canvas = torch.zeros(rows, size, size)
        for _ in range(self.config.pieces):
            whole = others[torch.randint(len(others), (rows,), generator=generator)]
            top, left = torch.randint(SIDE - PIECE + 1, (2,), generator=generator).tolist()
            piece = whole[:, top : top + PIECE, left : left + PIECE]
            paste(canvas, piece, torch.randint(size - PIECE + 1, (rows, 2), generator=generator))
        return canvas, torch.randint(size - SIDE + 1, (rows, 2), generator=generator)


def _labels(batches: Sequence[Batch]) -> list[int]:
    return [int(label) for batch in batches for label in batch.targets[:, 0]]
