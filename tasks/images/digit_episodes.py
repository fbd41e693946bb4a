"""Episodes of few labeled digits and of digits to label."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.errors import InvalidConfig
from tasks.data.digits import (
    Digits,
)


class Episodes(NamedTuple):
    """Images in order, query images last, and the label of each."""

    images: Float[Tensor, "B T P"]
    labels: Int[Tensor, "B T"]


def draw_episodes(
    digits: Digits, rows: int, size: tuple[int, int, int], generator: torch.Generator
) -> Episodes:
    """Episodes of classes that are a digit turned in one way each; no image occurs twice.

    Args:
        digits: What to draw from.
        rows: B, number of episodes.
        size: Classes, labeled images of each, query images.
        generator: Of all draws.

    Raises:
        InvalidConfig: A class has fewer images than an episode may need of it.
    """
    ways, shots, asked = size
    refuse_too_many(digits, shots, asked)
    kinds = digits.labels.unique()
    chosen = kinds[torch.rand(rows, len(kinds), generator=generator).argsort(1)[:, :ways]]
    turned = torch.randint(8, (rows, ways), generator=generator)
    # random images of each class, never one twice: `shots` with labels, the others as queries
    luck = torch.rand(rows, 1, len(digits.labels), generator=generator)
    luck = luck.masked_fill(digits.labels != chosen.unsqueeze(-1), -1.0)
    drawn = luck.topk(shots + asked, -1).indices
    shown = torch.arange(ways).repeat_interleave(shots)
    order = torch.rand(rows, len(shown), generator=generator).argsort(1)
    label = torch.cat((shown[order], torch.randint(ways, (rows, asked), generator=generator)), 1)
    turn = torch.arange(shots).repeat(ways)[order]
    turn = torch.cat((turn, (shots + torch.arange(asked)).expand(rows, -1)), 1)
    index = drawn[torch.arange(rows)[:, None], label, turn]
    images = all_turned(digits.images)[turned.gather(1, label), index]
    return Episodes(images.flatten(2), label)


def refuse_too_many(digits: Digits, shots: int, asked: int) -> None:
    """Refuse episodes for which a class may have too few images.

    Raises:
        InvalidConfig: A class has fewer images than an episode may need of it.
    """
    _, images_of = digits.labels.unique(return_counts=True)
    if shots + asked > (fewest := int(images_of.min())):
        raise InvalidConfig(
            f"fewshot_digits: an episode of {shots} labeled and {asked} query images may need "
            f"{shots + asked} of one class, and one here has {fewest}; ask for fewer."
        )


def all_turned(images: Float[Tensor, "N 8 8"]) -> Float[Tensor, "8 N 8 8"]:
    """Each image turned by quarters, as it is and mirrored."""
    both = (images, images.flip(2))
    return torch.stack([torch.rot90(one, quarter, (1, 2)) for one in both for quarter in range(4)])
