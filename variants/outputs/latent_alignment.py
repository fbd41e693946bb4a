"""Predictions from single source positions, for outputs that marginalize latent alignments."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bench.api.errors import Refused
from bench.api.trace import Trace


def values_as_contexts(trace: Trace, owner: str) -> Float[Tensor, "B S Dv"]:
    """The context of each position when it alone is read."""
    if len(trace.memories) != 1 or trace.memories[0] is None:
        raise Refused(
            f"{owner} sums over the keys of one slot, and this network has another number."
        )
    value = trace.memories[0].source.value
    if value.shape[1] != 1 or value.shape[3] != trace.context.shape[2]:
        raise Refused(f"{owner} needs one raw head, whose values are the contexts; use head=raw.")
    return value[:, 0]


def in_chunks(count: int, size: int, part: Callable[[slice], Tensor]) -> Iterator[Tensor]:
    """Parts of some rows after others; training recomputes all but one of them."""

    def run(at: int) -> Tensor:
        return part(slice(at, at + size))

    for at in range(0, max(1, count), size):
        if count > size and torch.is_grad_enabled():
            yield checkpoint(run, at, use_reentrant=False)
        else:
            yield run(at)
