"""Implementations: names of the code that computes the same mathematics."""

from typing import Literal, get_args

from bench.api.errors import UnknownName

Impl = Literal["auto", "eager", "sdpa", "compiled"]
"""Which code computes the same mathematics: the best there is, plain torch, its fused kernel, or
plain torch behind `torch.compile`. The last two are timed and never trained: fused code gives no
weights, with which everything that is trained is scored, and compiled code is compiled again for
every length. `auto` is fused where nobody wants weights, in training too."""
IMPLS: tuple[Impl, ...] = get_args(Impl)


def impl_of(name: str) -> Impl:
    """Read the name of an implementation.

    Raises:
        UnknownName: There is no such code.
    """
    for known in IMPLS:
        if name == known:
            return known
    raise UnknownName.among("impl", name, IMPLS)
