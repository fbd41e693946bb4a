"""Typed options of anything that can be selected, with search ranges on the fields."""

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bench.api.errors import InvalidConfig, UnknownName
from bench.api.plain_text import shortened
from bench.api.selector import Selector, Value, parse, show_value


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
class Legal:
    """Values that an option may have, both ends included, where its range does not say it.

    A range is for studies, and a user may leave it. But a range of positive numbers says that
    nothing else has a meaning, unless this says that 0 has one, such as a loss that counts nothing.
    """

    low: float
    high: float = math.inf


@dataclass(frozen=True)
class OfAxis:
    """An option that names a component of this axis; for options whose own name is no axis."""

    axis: str


@dataclass(frozen=True)
class FirstDefault:
    """The default that an option had when it was added; for an option that has another one today.

    Ids leave out an option that has its first default, so cells from before the change keep
    theirs. Selectors always write such an option out, so their text means the same before and
    after (ADR 10).
    """

    value: bool | int | float | str
    """As it is typed in a selector."""


OptionValue = bool | int | float | str | Selector | tuple[Selector, ...] | None
"""What a field of a config holds."""

Range = IntRange | FloatRange | Choices

LARGEST = 2**31 - 1
"""Whole number that an option may have; libraries count with no larger ones."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of all option classes: frozen, keyword-only, every field with a default."""


@dataclass(frozen=True, kw_only=True)
class NoOptions(Config):
    """Nothing to choose."""


ConfigT = TypeVar("ConfigT", bound=Config)


def build_config(cls: type[ConfigT], options: Mapping[str, Value], owner: str) -> ConfigT:
    """Turn selector options into a config; unknown keys, wrong types and sizes are errors.

    Raises:
        InvalidConfig: Names the owner, the key, the value and what is legal.
    """
    hints = _hints(cls)
    # mypy takes the hash of instances for that of the class, here and at other cached functions
    names = _names(cls)  # type: ignore[arg-type]
    values: dict[str, OptionValue] = {}
    for key, value in options.items():
        if key not in names:
            message = UnknownName.among(f"option of {owner}", key, names)
            raise InvalidConfig(str(message))
        values[key] = _coerce(hints[key], value, f"{owner}: {key}")
    made = cls(**values)  # what a class says itself names more than one option
    for key, given in values.items():
        _refuse_impossible(hints[key], given, f"{owner}: {key}")
    return made


def config_options(config: Config) -> dict[str, Value]:
    """Write every field out as selector options, defaults too."""
    return {name: _shown(getattr(config, name)) for name in _names(type(config))}  # type: ignore[arg-type]


def default_options(cls: type[Config]) -> Mapping[str, Value]:
    """Write the defaults out as selector options."""
    return _default_options(cls)  # type: ignore[arg-type]


@cache
def _default_options(cls: type[Config]) -> Mapping[str, Value]:
    return config_options(cls())


@cache
def _names(cls: type[Config]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def changed_options(config: Config) -> dict[str, Value]:
    """Write those fields out that differ from their default, or whose default has changed."""
    always = first_defaults(type(config))
    return {
        field.name: _shown(getattr(config, field.name))
        for field in fields(config)
        if field.name in always or getattr(config, field.name) != field.default
    }


def _shown(value: OptionValue) -> Value:
    """One field as an option of a selector."""
    if value is None:
        return (Selector("none"),)
    if isinstance(value, str):
        return (Selector(value),)
    if isinstance(value, Selector):
        return (value,)
    return value


def search_ranges(cls: type[Config]) -> dict[str, Range]:
    """Ranges that the fields declare, by field name."""
    found: dict[str, Range] = {}
    for name, hint in _hints(cls).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, IntRange | FloatRange | Choices):
                found[name] = extra
    return found


def declared_axes(cls: type[Config]) -> Mapping[str, str]:
    """Axes that fields declare with `OfAxis`, by field name."""
    return _declared_axes(cls)  # type: ignore[arg-type]


@cache
def _declared_axes(cls: type[Config]) -> Mapping[str, str]:
    return {
        name: extra.axis
        for name, hint in _hints(cls).items()
        for extra in getattr(hint, "__metadata__", ())
        if isinstance(extra, OfAxis)
    }


def first_defaults(cls: type[Config]) -> Mapping[str, Value]:
    """First defaults of the options whose default has changed since, by field name."""
    return _first_defaults(cls)  # type: ignore[arg-type]


@cache
def _first_defaults(cls: type[Config]) -> Mapping[str, Value]:
    return {
        name: config_options(build_config(cls, {name: _typed(extra.value)}, name))[name]
        for name, hint in _hints(cls).items()
        for extra in getattr(hint, "__metadata__", ())
        if isinstance(extra, FirstDefault)
    }


_HINTS: dict[type[Config], dict[str, object]] = {}


def _hints(cls: type[Config]) -> Mapping[str, object]:
    """Annotations of the fields, evaluated once: planning asks thousands of times."""
    found = _HINTS.get(cls)
    if found is None:
        found = _HINTS[cls] = get_type_hints(cls, include_extras=True)
    return found


def _typed(value: bool | int | float | str) -> Value:
    return parse(f"x[y={value}]").options["y"] if isinstance(value, str) else value


def default_of(cls: type[Config], name: str) -> object:
    """Default of one field."""
    for field in fields(cls):
        if field.name == name and field.default is not MISSING:
            return field.default
    raise KeyError(name)


def _refuse_impossible(hint: object, value: OptionValue, where: str) -> None:
    """Refuse a number that means nothing: a width of 0, a share of 2.

    Raises:
        InvalidConfig: It lies outside of what the annotation allows.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    extras = getattr(hint, "__metadata__", ())
    said = [extra for extra in extras if isinstance(extra, Legal)]
    lowest = max(map(_lowest, extras), default=-math.inf)
    if said:
        _refuse_outside(said[0], value, where)
    elif isinstance(value, int):
        _refuse_outside(Legal(min(lowest, 1)), value, where)
    elif lowest > 0 >= value:
        raise InvalidConfig(f"{where} must be above 0, got {value}.")


def _refuse_outside(legal: Legal, value: float, where: str) -> None:
    if not legal.low <= value <= legal.high:
        most = f" and at most {legal.high}" if math.isfinite(legal.high) else ""
        raise InvalidConfig(f"{where} must be at least {legal.low}{most}, got {value}.")


def _lowest(extra: object) -> float:
    """Where a range of numbers that are not negative begins; below all numbers for anything else.

    Whole numbers that begin at 0 are counts. Real ones may be shares that a study keeps positive.
    """
    if isinstance(extra, IntRange | FloatRange):
        return extra.low if extra.low >= 0 else -math.inf
    if isinstance(extra, Choices):
        numbers = [one for one in extra.options if not isinstance(one, bool | str)]
        return min(numbers) if numbers and min(numbers) >= 0 else -math.inf
    return -math.inf


def _coerce(hint: object, value: Value, where: str) -> OptionValue:
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


def _coerce_union(hint: object, value: Value, where: str) -> OptionValue:
    if _word(value) == "none" and type(None) in get_args(hint):
        return None
    inner = [option for option in get_args(hint) if option is not type(None)]
    return _coerce(inner[0], value, where)


def _coerce_scalar(hint: object, value: Value, where: str) -> OptionValue:
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST:
            most = f"at most {LARGEST}" if value > 0 else f"at least -{LARGEST}"
            raise InvalidConfig(f"{where} must be {most}, got {shortened(str(value), 40)}.")
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is str and _word(value) is not None:
        return _word(value)
    if hint is Selector and isinstance(value, tuple) and len(value) == 1:
        return value[0]
    word = _word(value)
    shown = show_value(value) if word is None else repr(word)
    raise InvalidConfig(f"{where} must be {_IN_WORDS.get(hint, hint)}, got {shown}.")


_IN_WORDS: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a word",
    Selector: "a name",
}
"""What an option of each type takes, as one says it."""


def _word(value: Value) -> str | None:
    """The bare word of a value such as `interleaved`, else None."""
    if isinstance(value, tuple) and len(value) == 1 and not value[0].options:
        return value[0].name
    return None
