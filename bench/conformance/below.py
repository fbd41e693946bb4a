"""What a layer below hands on, drawn at random, where heads read one."""

import torch
from torch import Tensor

from bench.api.source import Memory, Source
from bench.conformance.place import Placed
from bench.conformance.question import cut
from bench.conformance.walkthrough import LayerBelow

SEED = 71


def draw_below(subject: Placed, mask: Tensor | None, tokens: Tensor) -> Source | None:
    """Keys, values and what stands beside the keys of a layer below; None where none is read.

    All of them want gradients. Keys are not turned yet.

    Args:
        subject: Who reads them.
        mask: Which keys are real.
        tokens: Ids of the keys.
    """
    if subject.slot.link is None:
        return None
    rng = torch.Generator().manual_seed(SEED)
    dims, variant = subject.slot.heads.dims, subject.variant
    rows, keys = tokens.shape

    def normal(heads: int, width: int, spread: float = 1.0) -> Tensor:
        drawn = torch.randn(rows, heads, keys, width, generator=rng, dtype=torch.float64)
        return (spread * drawn).requires_grad_()

    return Source(
        key=normal(dims.kv_heads, dims.key_width, variant.spread),
        value=normal(dims.num_value_heads, dims.value_width),
        mask=mask,
        tokens=tokens,
        extras={n: normal(dims.kv_heads, one.width) for n, one in variant.key_inputs.items()},
    )


class Handed:
    """What the layer below hands on, call by call; nothing where none is read."""

    def __init__(self, subject: Placed, below: Source | None) -> None:
        self.layer = LayerBelow(subject.variant)
        self.below = below

    def next(self, keys: slice) -> Memory | None:
        """What it has attended to once these keys have come, too."""
        return None if self.below is None else self.layer.hand_on(cut(self.below, keys=keys))
