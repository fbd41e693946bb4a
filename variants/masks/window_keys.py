"""Windows of consecutive keys, listed for every query."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bench.api.call import Call


def window_keys(
    call: Call, first: Int[Tensor, "#B #Hq #L"], width: int, step: int = 1
) -> tuple[Int[Tensor, "B Hq L W"], Bool[Tensor, "B Hq L W"], Int[Tensor, "B Hq L W"]]:
    """Keys of windows that begin at given positions, which may lie outside of the source.

    Args:
        call: The queries, each of which has a window.
        first: Where windows begin.
        width: Keys of a window.
        step: Distance between them.

    Returns:
        Index of each key, clamped into the source; whether the key is real, not in the future and
        was not clamped; its position before it was clamped.
    """
    source = call.memory.source
    rows, heads, length, _ = call.query.shape
    num_keys = source.num_keys
    place = first.unsqueeze(-1) + step * torch.arange(width, device=first.device)
    place = place.expand(rows, heads, length, width)
    index = place.clamp(0, num_keys - 1)
    allowed = index == place
    if source.mask is not None:
        real = source.mask[:, None].expand(-1, heads, -1)
        allowed = allowed & real.gather(2, index.flatten(2)).unflatten(2, (length, width))
    if call.causal:
        allowed = allowed & (place <= call.position[:, None])
    return index, allowed, place
