"""German descriptions of scenes of digits, some of which need the picture."""

import torch
from jaxtyping import Bool
from torch import Tensor

from bench.api.batch import Batch
from tasks.images.image_task import NAMES
from tasks.images.scene_drawing import (
    DigitScene,
    captions,
)

GERMAN = (
    *("Null", "Eins", "Zwei", "Drei", "Vier"),
    *("Fünf", "Sechs", "Sieben", "Acht", "Neun"),
)
AMBIGUOUS = "Ziffer"
SOURCE_WORDS = ("", "", "", "", *GERMAN, AMBIGUOUS, "eine", "einer", "links", "von", "über")
"""Word of each source id; ids below 4 are special."""
SOURCE_IDS = {word: number for number, word in enumerate(SOURCE_WORDS) if word}


def descriptions(scene: DigitScene, hidden: Bool[Tensor, "B N"], cells: int) -> list[str]:
    """The captions of `captions` in German, word by word; hidden digits are called Ziffer (digit).

    >>> scene = DigitScene(torch.tensor([[3, 8, 7]]), torch.tensor([[0, 2, 4]]))
    >>> descriptions(scene, torch.tensor([[False, True, False]]), 3)
    ['eine Drei links von einer Ziffer über einer Sieben']
    """
    found = []
    for text, unnamed in zip(captions(scene, cells), hidden.tolist(), strict=True):
        open_ones = iter(unnamed)
        words = [
            (AMBIGUOUS if next(open_ones) else GERMAN[NAMES.index(word)])
            if word in NAMES
            else {"left": "links", "of": "von", "above": "über"}.get(word, "einer")
            for word in text.split()
        ]
        found.append(" ".join(["eine", *words[1:]]))
    return found


def ambiguous_places(batch: Batch) -> Bool[Tensor, "B N"]:
    """Which digits of each scene the sentence does not name, in reading order."""
    digits = {*GERMAN, AMBIGUOUS}
    said = [[word for word in name.split() if word in digits] for name in batch.names]
    return torch.tensor([[word == AMBIGUOUS for word in row] for row in said])
