"""Typed options of anything that can be selected, with search ranges on the fields."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bench.api.errors import InvalidConfig, UnknownName
from bench.api.selector import Selector, Value


@dataclass(frozen=True)
class IntRange:
    """Whole numbers a study may try, both ends included."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class FloatRange:
    """Real numbers a study may try, both ends included."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Choices:
    """Values a study may try."""

    options: tuple[bool | int | float | str, ...]


@dataclass(frozen=True)
class OfAxis:
    """An option that names a component of this axis; for options whose own name is no axis."""

    axis: str


@dataclass(frozen=True)
class AddedLater:
    """An option that came after results were published; it is written out only where it is set.

    Ids hash what is written out, so cells from before it keep theirs. Its default is what was
    there before and must stay so; another default would be another option.
    """


Range = IntRange | FloatRange | Choices


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of all option classes: frozen, keyword-only, every field with a default."""


@dataclass(frozen=True, kw_only=True)
class NoOptions(Config):
    """Nothing to choose."""


ConfigT = TypeVar("ConfigT", bound=Config)


def build_config(cls: type[ConfigT], options: Mapping[str, Value], owner: str) -> ConfigT:
    """Turn selector options into a config; unknown keys and wrong types are errors.

    Raises:
        InvalidConfig: Names the owner, the key, the value and what is legal.
    """
    hints = _hints(cls)
    names = [field.name for field in fields(cls)]
    values: dict[str, Any] = {}
    for key, value in options.items():
        if key not in names:
            message = UnknownName.among(f"option of {owner}", key, names)
            raise InvalidConfig(str(message))
        values[key] = _coerce(hints[key], value, f"{owner}: {key}")
    return cls(**values)


def config_options(config: Config) -> dict[str, Value]:
    """Write fields out as selector options, defaults too; those `AddedLater` only where set."""
    found: dict[str, Value] = {}
    # mypy takes the hash of instances for that of the class
    later = _added_later(type(config))  # type: ignore[arg-type]
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in later and value == field.default:
            continue
        if value is None:
            found[field.name] = (Selector("none"),)
        elif isinstance(value, str):
            found[field.name] = (Selector(value),)
        elif isinstance(value, Selector):
            found[field.name] = (value,)
        else:
            found[field.name] = value
    return found


def search_ranges(cls: type[Config]) -> dict[str, Range]:
    """Ranges that the fields declare, by field name."""
    found: dict[str, Range] = {}
    for name, hint in _hints(cls).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, IntRange | FloatRange | Choices):
                found[name] = extra
    return found


def declared_axes(cls: type[Config]) -> dict[str, str]:
    """Axes that fields declare with `OfAxis`, by field name."""
    found: dict[str, str] = {}
    for name, hint in _hints(cls).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, OfAxis):
                found[name] = extra.axis
    return found


_HINTS: dict[type[Config], dict[str, Any]] = {}


def _hints(cls: type[Config]) -> dict[str, Any]:
    """Annotations of the fields, evaluated once: planning asks thousands of times."""
    found = _HINTS.get(cls)
    if found is None:
        found = _HINTS[cls] = get_type_hints(cls, include_extras=True)
    return found


@cache
def _added_later(cls: type[Config]) -> frozenset[str]:
    return frozenset(
        name
        for name, hint in _hints(cls).items()
        if any(isinstance(extra, AddedLater) for extra in getattr(hint, "__metadata__", ()))
    )


def default_of(cls: type[Config], name: str) -> Any:
    """Default of one field."""
    for field in fields(cls):
        if field.name == name and field.default is not MISSING:
            return field.default
    raise KeyError(name)


def _coerce(hint: Any, value: Value, where: str) -> Any:
    """Convert a parsed value to the annotated type, or say what was expected."""
    if get_origin(hint) is Annotated:
        return _coerce(get_args(hint)[0], value, where)
    if get_origin(hint) in (Union, types.UnionType):
        return _coerce_union(hint, value, where)
    if get_origin(hint) is Literal:
        word = _word(value)
        if word in get_args(hint):
            return word
        raise InvalidConfig(str(UnknownName.among(f"value of {where}", str(word), get_args(hint))))
    if get_origin(hint) is tuple:
        if isinstance(value, tuple):
            return value
        raise InvalidConfig(f"{where} takes names joined by '+', got {value!r}.")
    return _coerce_scalar(hint, value, where)


def _coerce_union(hint: Any, value: Value, where: str) -> Any:
    if _word(value) == "none" and type(None) in get_args(hint):
        return None
    inner = [option for option in get_args(hint) if option is not type(None)]
    return _coerce(inner[0], value, where)


def _coerce_scalar(hint: Any, value: Value, where: str) -> Any:
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is str and _word(value) is not None:
        return _word(value)
    if hint is Selector and isinstance(value, tuple) and len(value) == 1:
        return value[0]
    shown = _word(value) or value
    raise InvalidConfig(f"{where} must be {getattr(hint, '__name__', hint)}, got {shown!r}.")


def _word(value: Value) -> str | None:
    """The bare word of a value such as `interleaved`, else None."""
    if isinstance(value, tuple) and len(value) == 1 and not value[0].options:
        return value[0].name
    return None
