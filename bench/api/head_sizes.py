"""Widths of heads that a paper gives as multiples of the width of one head.

Heads have defaults for small networks. Where a layer of another size is timed, such widths follow
the head, as in the paper, or heads of different sizes would be compared.
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
