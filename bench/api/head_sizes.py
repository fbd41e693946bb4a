"""Sizes of heads that follow from others: widths from the width of a head, key heads from heads.

Heads have defaults for small networks. Where a layer of another size is timed, such sizes follow,
as in the paper, or heads of different sizes would be compared.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

_MULTIPLES: dict[str, Mapping[str, Fraction]] = {}


def declare_multiples(head: str, **options: Fraction) -> None:
    """Say how options of some heads follow the width of one head.

    Args:
        head: Registered name of the heads.
        options: Each option with its width over the width of one head (dimensionless). 0 stands
            for 0, which leaves out what the option is about.
    """
    _MULTIPLES[head] = MappingProxyType(options)


def multiples_of(head: str) -> Mapping[str, Fraction]:
    """Options that follow the width of one head; empty where none was declared.

    >>> multiples_of("no_such_heads")
    mappingproxy({})
    """
    return _MULTIPLES.get(head, MappingProxyType({}))


def key_heads(shared: int, asked: int, heads: int) -> int:
    """Key heads of `heads` query heads that share them as `asked` query heads share `shared`.

    At least one, and no more than divide the query heads. 0 means as many as query heads and stays
    0; one key head for all stays one.

    >>> key_heads(2, 4, 8), key_heads(1, 4, 8), key_heads(0, 4, 8)
    (4, 1, 0)
    """
    if shared < 2:
        return shared
    wanted = max(1, heads * shared // asked)
    return next(n for n in range(wanted, 0, -1) if heads % n == 0)
