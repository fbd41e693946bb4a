"""Values as they are read from JSON, and how to take one for what it should be.

Files of a run outlive the code that wrote them. So what is missing, or of another kind, counts as
empty; a reader says what that means.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn, Union

from bench.api.plain_text import message_of, storable

LARGEST = 1e300
"""Numbers of files are smaller; a larger one is no measurement."""

Json = Union[None, bool, int, float, str, list["Json"], dict[str, "Json"]]
JsonObject = Mapping[str, Json]


def as_object(value: Json) -> JsonObject:
    """An object; empty where the value is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> Sequence[Json]:
    """A list; empty where the value is none."""
    return value if isinstance(value, list) else ()


def as_text(value: Json) -> str:
    """A text; empty where there is nothing."""
    return str(value or "")


def as_number(value: Json) -> float | None:
    """A finite number; None where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < LARGEST else None


def read_value(text: str | bytes) -> Json:
    """What a JSON text holds, in texts that UTF-8 can hold.

    Raises:
        ValueError: It is not JSON, holds a number that is not finite, or is nested too deeply.
    """
    try:
        found: Json = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        half = text.lower().find("\\ud") if isinstance(text, str) else text.lower().find(b"\\ud")
        if half >= 0:  # maybe half of a surrogate pair
            found = json.loads(storable(json.dumps(found, ensure_ascii=False)))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return found


def read_object(text: str | bytes) -> dict[str, Json]:
    """What a JSON text holds, which every file of a run has at its top: an object.

    Raises:
        ValueError: It is not JSON as `read_value` reads it, or something other than an object.
    """
    found = read_value(text)
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    return found


def why_unreadable(error: Exception, *, one_line: bool = False) -> str:
    """Why a text was not read as JSON, in words of files and not of Python.

    >>> try:
    ...     _ = read_value('{"a":')
    ... except ValueError as error:
    ...     print(why_unreadable(error), "/", why_unreadable(error, one_line=True))
    no JSON: line 1, column 6 / no JSON: column 6

    Args:
        error: What `read_value` raised.
        one_line: Whether the place of the line is told already.
    """
    if isinstance(error, UnicodeDecodeError):
        return "no text"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return message_of(error)
    if not error.doc.strip():
        return "empty"
    line = "" if one_line else f"line {error.lineno}, "
    return f"no JSON: {line}column {error.colno}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a number")
    return number
