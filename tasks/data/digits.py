"""Handwritten digits of 8 by 8 pixels, as scikit-learn ships them: no download.

Alpaydin & Kaynak, 1998, "Optical recognition of handwritten digits", UCI Machine Learning
Repository, https://doi.org/10.24432/C50P49 (CC BY 4.0); scikit-learn holds its 1797 test images.
Images are in the order in which people wrote them, so parts that are cut from that order have
mostly different writers.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.license import License
from bench.api.registry import Citation
from bench.api.task import Split
from tasks.data.corpus import parts_note

SIDE = 8
"""Pixels on each side of an image."""
INK = 16
"""Most ink of a pixel, as the data count it."""
DIGITS_LICENSE = License(
    "CC BY 4.0 (UCI handwritten digits, shipped with scikit-learn)", redistributable=True
)
DIGITS_CITATION = Citation(text="Alpaydin & Kaynak, 1998", url="https://doi.org/10.24432/C50P49")
DIGITS_NOTE = (
    "1797 handwritten digits of scikit-learn: 1000 for training, 297 for validation, 500 for test"
)
PARTS: dict[Split, tuple[int, int]] = {
    "train": (0, 1000),
    "validation": (1000, 1297),
    "test": (1297, 1797),
}


class Digits(NamedTuple):
    """Images and what they show."""

    images: Float[Tensor, "N 8 8"]
    """Ink from 0 to 1."""
    labels: Int[Tensor, " N"]

    def of(self, *classes: int) -> "Digits":
        """Only images of these digits."""
        kept = torch.isin(self.labels, torch.tensor(classes))
        return Digits(self.images[kept], self.labels[kept])


def load_digits(part: Split) -> Digits:
    """One of three parts that share no image."""
    first, last = PARTS[part]
    images, labels = _all()
    return Digits(images[first:last], labels[first:last])


@lru_cache(maxsize=1)
def digits_parts() -> str:
    """Hashes of the three parts: label and ink of every image, which are whole numbers."""
    found: dict[str, list[list[int]]] = {}
    for part in PARTS:
        images, labels = load_digits(part)
        ink = (images * INK).round().to(torch.int64).flatten(1)
        found[part] = torch.cat((labels.unsqueeze(1), ink), 1).tolist()
    return parts_note(found)


@lru_cache(maxsize=1)
def _all() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits as shipped  # noqa: PLC0415 - a second to import

    images, labels = shipped(return_X_y=True)
    pixels = torch.tensor(images, dtype=torch.float32).view(-1, SIDE, SIDE) / INK
    return pixels, torch.tensor(labels, dtype=torch.int64)


def patches(images: Float[Tensor, "B H W"], side: int) -> Float[Tensor, "B S F"]:
    """Cut pictures into squares, row by row, S = H W / side^2 and F = side^2."""
    cut = images.unfold(1, side, side).unfold(2, side, side)
    return cut.flatten(3).flatten(1, 2)
