"""The hash of the code that makes data, told by whoever can read code.

Tasks keep in the cache what takes long to make, and must not find it there once the code that made
it has been edited. What reads code lies above them (`bench/running/source_code.py`, ADR 17).
"""

from collections.abc import Callable, Iterable

Maker = Callable[..., object]
Reader = Callable[[Iterable[Maker]], str]

_reader: Reader | None = None


def read_code_by(reader: Reader) -> None:
    """Name the function that gives the hash of all code that some functions can reach."""
    global _reader  # noqa: PLW0603  one for the whole process, as the code is
    _reader = reader


def code_of(*makers: Maker) -> str:
    """Hash of all code that some functions can reach; empty where nobody reads code."""
    return "" if _reader is None else _reader(makers)
