"""Whether what was read from a file has the types of the dataclass that it becomes."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LARGEST = 2**63
"""Whole numbers of a table are smaller."""
PLAIN: Mapping[Any, set[type]] = {
    float: {float, int},
    int: {int},
    str: {str},
    bool: {bool},
    dict: {dict},
    None: {NoneType},
}


def refuse_wrong_types(kind: "type[DataclassInstance]", data: Mapping[str, Any]) -> None:
    """Compare values with the annotations of a dataclass, as far as these are plain.

    Raises:
        TypeError: A value has another type, or one without a default is missing.
        ValueError: A whole number is too large for a table, or a word is none of a closed set.
    """
    for name, types, words, needed in _expected(kind):
        if name not in data:
            if needed:
                raise TypeError(f"{name} is missing")
            continue
        value = data[name]
        if type(value) not in types:
            wanted = " or ".join(sorted(one.__name__ for one in types))
            raise TypeError(f"{name} is {type(value).__name__}, not {wanted}")
        if words and value not in words:
            raise ValueError(f"{name} is none of {', '.join(words)}")
        if type(value) is int and abs(value) >= LARGEST:
            raise ValueError(f"{name} is too large")


@cache
def _expected(
    kind: "type[DataclassInstance]",
) -> tuple[tuple[str, frozenset[type], tuple[str, ...], bool], ...]:
    """Name, exact types, closed set of words and whether it has no default, of each plain field."""
    hints = get_type_hints(kind)
    found = []
    for one in fields(kind):
        hint = hints[one.name]
        types = frozenset().union(*map(_types, _parts(hint)))
        words = get_args(hint) if get_origin(hint) is Literal else ()
        needed = one.default is MISSING and one.default_factory is MISSING
        if types:
            found.append((one.name, types, words, needed))
    return tuple(found)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _types(hint: Any) -> set[type]:
    """Exact types of values that fit; none for an annotation that is not plain."""
    if get_origin(hint) is Literal:
        return {str}
    return set(PLAIN.get(None if hint is NoneType else get_origin(hint) or hint, ()))
