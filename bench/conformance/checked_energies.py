"""Energies that are compared with the contract as they leave the code that computes them.

A wrong shape would else be an error of what reads them next, in a file of somebody else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from torch import Tensor

from bench.api.call import Call
from bench.api.chain import Chain
from bench.api.position import Position
from bench.api.score import Score
from bench.api.variant import Variant
from bench.conformance.certificate import CheckFailed


@contextmanager
def energies_of_the_contract(variant: Variant, how: str) -> Iterator[None]:
    """Fail where a score or a position returns energies of another shape than B H L S.

    Args:
        variant: Whose parts are watched.
        how: The mode, for sentences.
    """
    scores = (variant.score,) if isinstance(variant, Chain) else ()
    positions = tuple(one for one in variant.positions if one.changes_energy)
    parts: tuple[Score | Position, ...] = (*scores, *positions)
    for part in parts:
        # what an instance has stands before what its class has
        vars(part)["energy"] = partial(_checked, part.energy, part, how)
    try:
        yield
    finally:
        for part in parts:
            del vars(part)["energy"]


def _checked(
    energy: Callable[..., Tensor], part: Score | Position, how: str, call: Call, *more: object
) -> Tensor:
    """The energies of one part, once their shape is right.

    Args:
        energy: Computes them.
        part: Whose they are.
        how: The mode.
        call: What is asked.
        more: What else a score is given.

    Raises:
        CheckFailed: The shape is another one.
    """
    found = energy(call, *more)
    shape, wanted = tuple(found.shape), (*call.query.shape[:3], call.memory.num_keys)
    alike = shape[:2]
    if isinstance(part, Position):  # one row or one head may stand for all
        alike = tuple(w if n == 1 else n for n, w in zip(shape[:2], wanted[:2], strict=False))
    if (*alike, *shape[2:]) != wanted:
        name = f"{type(part).__name__}.energy"
        raise CheckFailed(
            f"{how}: {name} returns shape {shape}, not {wanted} (rows, heads, queries, keys)"
        )
    return found
