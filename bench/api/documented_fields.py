"""What the source says of each field of a dataclass: the string that stands under it."""

import ast
import inspect
from dataclasses import fields
from textwrap import dedent


def documented_fields(record: type) -> dict[str, str]:
    """Fields of a dataclass in order, each with the string under it; empty where there is none.

    >>> from bench.api.calibration import Setting
    >>> documented_fields(Setting)["protocol"]
    'Training options as a selector, `adam[evaluate_every=25]`.'

    Args:
        record: A dataclass; fields of its base classes are read in their sources.
    """
    said: dict[str, str] = {}
    for owner in reversed(record.__mro__):
        if "__annotations__" in vars(owner) and owner is not object:
            said |= _of_one_class(owner)
    return {field.name: said.get(field.name, "") for field in fields(record)}


def _of_one_class(owner: type) -> dict[str, str]:
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):  # made without a file
        return {}
    (body,) = ast.parse(dedent(source)).body
    assert isinstance(body, ast.ClassDef), "the source of a class"
    found: dict[str, str] = {}
    last = ""
    for line in body.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            last = line.target.id
        elif last and isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
            found[last], last = " ".join(str(line.value.value).split()), ""
        else:
            last = ""
    return found
