"""Values as they are read from JSON, and how to take one for what it should be.

Files of a run outlive the code that wrote them. So what is missing, or of another kind, counts as
empty; a reader says what that means.
"""

from collections.abc import Mapping, Sequence
from typing import Union

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
    """A number; None where there is none."""
    return None if value is None or isinstance(value, list | dict) else float(value)
