"""Scenes of handwritten digits, each in its own cell, and their English captions."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.task import Split
from tasks.data.bucketing import pad_rows
from tasks.data.digits import SIDE, load_digits
from tasks.images.image_task import FIRST, NAMES, paste

BOS, EOS = 1, 2
WORDS = ("", "", "", "", *NAMES, "a", "an", "left", "of", "above")
"""Word of each id; ids below 4 are special."""
IDS = {word: number for number, word in enumerate(WORDS) if word}


class DigitScene(NamedTuple):
    """Contents of some scenes of equally many digits, in reading order."""

    labels: Int[Tensor, "B N"]
    cells: Int[Tensor, "B N"]

    def corners(self, place: int, cells: int) -> Int[Tensor, "B 2"]:
        """Upper left pixels of the digits at one position of the reading order."""
        cell = self.cells[:, place]
        return torch.stack((cell // cells, cell % cells), 1) * SIDE


class Captioned(NamedTuple):
    """Captions as ids, under teacher forcing."""

    inputs: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]


def draw_scenes(
    part: Split, rows: int, count: int, cells: int, generator: torch.Generator
) -> tuple[DigitScene, Float[Tensor, "B N 8 8"]]:
    """Draw scenes of the digits of a part.

    Args:
        part: Whose images are used.
        rows: Scenes.
        count: Digits in each of them.
        cells: Cells on each side.
        generator: Random numbers.

    Returns:
        The scenes, and the image of each digit.
    """
    digits = load_digits(part)
    chosen = torch.randint(len(digits.labels), (rows, count), generator=generator)
    drawn = torch.rand(rows, cells**2, generator=generator).argsort(1)[:, :count]
    return DigitScene(digits.labels[chosen], drawn.sort(1).values), digits.images[chosen]


def scene_pictures(
    scene: DigitScene, images: Float[Tensor, "B N 8 8"], cells: int
) -> Float[Tensor, "B H H"]:
    """Lay the digits of each scene on an empty picture of H = 8 `cells` pixels a side."""
    canvas = torch.zeros(len(images), cells * SIDE, cells * SIDE)
    for place in range(images.shape[1]):
        paste(canvas, images[:, place], scene.corners(place, cells))
    return canvas


def captions(scene: DigitScene, cells: int) -> list[str]:
    """Name digits in reading order; `left of` in the same row, or else `above`.

    >>> captions(DigitScene(torch.tensor([[3, 8, 7]]), torch.tensor([[0, 2, 4]])), 3)
    ['a three left of an eight above a seven']
    """
    found = []
    for labels, places in zip(scene.labels.tolist(), scene.cells.tolist(), strict=True):
        words: list[str] = []
        for number, (label, place) in enumerate(zip(labels, places, strict=True)):
            if number:
                same_row = place // cells == places[number - 1] // cells
                words.append("left of" if same_row else "above")
            words.append(f"{'an' if NAMES[label] == 'eight' else 'a'} {NAMES[label]}")
        found.append(" ".join(words))
    return found


def captioned(texts: Sequence[str]) -> Captioned:
    """Code captions; each ends in EOS."""
    targets, mask = pad_rows([[*(IDS[word] for word in text.split()), EOS] for text in texts])
    first = torch.full((len(texts), 1), BOS)
    return Captioned(torch.cat((first, targets[:, :-1]), 1), targets, mask)


def said_words(ids: Sequence[int]) -> list[str]:
    """Words of some ids, without special ones."""
    return [WORDS[number] for number in ids if WORDS[number]]


def named(targets: Int[Tensor, "*B T"]) -> Bool[Tensor, "*B T"]:
    """Which words are digits."""
    return (targets >= FIRST) & (targets < FIRST + len(NAMES))


def gold_of_named(
    targets: Int[Tensor, "B T"], covers: Float[Tensor, "B N S"]
) -> Float[Tensor, "B T S"]:
    """The positions of the n-th digit for the n-th digit's word, nothing for other words."""
    digit = named(targets)
    which = (digit.cumsum(1) - 1).clamp(min=0)
    chosen = covers.gather(1, which.unsqueeze(-1).expand(-1, -1, covers.shape[2]))
    return torch.where(digit.unsqueeze(-1), chosen, 0.0)
