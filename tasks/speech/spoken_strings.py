"""Strings of recorded words: one speaker each, with silence between the words."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.errors import InvalidConfig

GAP = (240, 960)
"""Shortest and longest silence between two words (samples): 30 to 120 ms at 8 kHz."""


class Recording(NamedTuple):
    """One spoken word."""

    wave: Float[Tensor, " N"]
    word: int
    """Its number in the list of words."""
    speaker: str


class Spoken(NamedTuple):
    """Several words of one speaker, with silence between them."""

    parts: tuple[int, ...]
    """Numbers of the recordings."""
    gaps: tuple[int, ...]
    """Samples of silence before each word."""


def draw_strings(
    part: Sequence[Recording], counts: tuple[int, int], generator: torch.Generator
) -> list[Spoken]:
    """Recordings in a random order, cut into strings of one speaker each.

    A rest of fewer words than a string has is left out.

    Args:
        part: Recordings.
        counts: Fewest and most words of a string.
        generator: Random numbers.

    Raises:
        InvalidConfig: No speaker has recordings enough for one string.
    """
    low, high = counts
    found = []
    for speaker in sorted({one.speaker for one in part}):
        own = [index for index, one in enumerate(part) if one.speaker == speaker]
        order = [own[at] for at in torch.randperm(len(own), generator=generator).tolist()]
        words = torch.randint(low, high + 1, (len(own),), generator=generator).tolist()
        gaps = torch.randint(GAP[0], GAP[1] + 1, (len(own),), generator=generator).tolist()
        at = 0
        for count in words:
            parts = tuple(order[at : at + count])
            if len(parts) < low:
                break
            found.append(Spoken(parts, (0, *gaps[at + 1 : at + len(parts)])))
            at += count
    if not found:
        raise InvalidConfig(f"no speaker has {low} recordings for one string; ask for fewer words.")
    mixed = torch.randperm(len(found), generator=generator).tolist()
    return [found[index] for index in mixed]


def most_of_a_speaker(part: Sequence[Recording]) -> int:
    """Recordings of the speaker who has the most of them."""
    return max(Counter(one.speaker for one in part).values(), default=0)


def num_samples(part: Sequence[Recording], spoken: Spoken) -> int:
    """Length of the words and of the silence between them."""
    return sum(len(part[index].wave) for index in spoken.parts) + sum(spoken.gaps)


def joined_wave(part: Sequence[Recording], spoken: Spoken) -> Float[Tensor, " N"]:
    """The words one after the other."""
    pieces = []
    for index, gap in zip(spoken.parts, spoken.gaps, strict=True):
        pieces += [torch.zeros(gap), part[index].wave]
    return torch.cat(pieces)
