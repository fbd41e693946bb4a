"""Options of a part in words: default, kind of value, what a study tries, and what it means."""

from collections.abc import Mapping
from dataclasses import fields
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from bench.api.config import Config, Range


def options_of(config: "type[Config]") -> list[dict[str, str]]:
    """Every option of a class of options, in its order."""
    from bench.api.config import search_ranges
    from bench.api.documented_fields import documented_fields

    meanings = documented_fields(config)
    ranges = search_ranges(config)
    hints = get_type_hints(config)
    return [
        {
            "option": field.name,
            "default": str(field.default),
            "type": _type_in_words(hints[field.name]),
            "range": range_in_words(ranges[field.name]) if field.name in ranges else "",
            "meaning": meanings[field.name],
        }
        for field in fields(config)
    ]


def range_in_words(tried: "Range") -> str:
    """What a study may try.

    >>> from bench.api.config import Choices, IntRange
    >>> range_in_words(IntRange(1, 256, log=True)), range_in_words(Choices((1.0, 2.0)))
    ('1 to 256 on a log scale', 'one of 1.0, 2.0')
    """
    from bench.api.config import Choices

    if isinstance(tried, Choices):
        return f"one of {', '.join(map(str, tried.options))}"
    return f"{tried.low} to {tried.high}" + (" on a log scale" if tried.log else "")


def option_lines(option: Mapping[str, str]) -> list[str]:
    """One option for people; what it means is folded below it."""
    tried = f"; a study tries {option['range']}" if option["range"] else ""
    space = " " * 14
    return [
        f"option    {option['option']} = {option['default']} ({option['type']}){tried}",
        *wrap(option["meaning"], 100, initial_indent=space, subsequent_indent=space),
    ]


def _type_in_words(kind: object) -> str:
    """A type as one reads it: its name, or the values that are allowed."""
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    return getattr(kind, "__name__", str(kind))
