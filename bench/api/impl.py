"""Implementations: names of the code that computes the same mathematics."""

from collections.abc import Sequence
from typing import Literal, get_args

from bench.api.errors import Refused, UnknownName

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


def check_code(name: str, impl: Impl, codes: Sequence[Impl]) -> None:
    """Check that there is code for a variant.

    Args:
        name: Of the variant.
        impl: The code that is asked for.
        codes: What there is, as the variant declares it.

    Raises:
        Refused: It is not among them.
    """
    if impl == "compiled":
        raise Refused(
            "compiled code is plain torch behind torch.compile, which `bench run --impl "
            "compiled` times; build with impl='eager' and compile it yourself."
        )
    if impl not in codes:
        raise Refused(f"{name} has no impl={impl}; use {' or '.join(codes)}.")
