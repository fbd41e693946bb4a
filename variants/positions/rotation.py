"""Turning pairs of numbers by angles that grow with the place, shared by rotary positions."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from variants.precision import at_least_single

Layout = Literal["interleaved", "halves"]
"""Which numbers are a pair: neighbors, or number m and number m of the second half."""


BASE = 10000.0
"""Root of the frequencies where nobody asks for another one."""


def frequencies(width: int, base: float, device: torch.device) -> Float[Tensor, " P"]:
    """base^(-2 m / width) for each pair m, in float64: angles grow with the place.

    An angle of thousands has few digits left in float32.
    """
    even = torch.arange(0, width // 2 * 2, 2, dtype=torch.float64, device=device)
    return base ** (-even / width)


def rotate(
    x: Float[Tensor, "B H n E"],
    places: Int[Tensor, " n"],
    frequency: Float[Tensor, " P"],
    layout: Layout,
) -> Float[Tensor, "B H n E"]:
    """Turn pair m of every vector by place times frequency m, in float32 at least."""
    angle = places[:, None] * frequency
    wide = at_least_single(x)
    cosine, sine = angle.cos().to(wide.dtype), angle.sin().to(wide.dtype)
    if layout == "interleaved":
        one, two = wide.unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack((one * cosine - two * sine, one * sine + two * cosine), -1).flatten(-2)
    else:
        one, two = wide.chunk(2, -1)
        turned = torch.cat((one * cosine - two * sine, one * sine + two * cosine), -1)
    return turned.to(x.dtype)
