"""The selector grammar: the text that names a variant, task, backbone or protocol.

    selector := name | name "[" key "=" value ("," key "=" value)* "]"
    value    := term ("+" term)* | number | "true" | "false"
    term     := selector | count "*" selector

`3*a+b` means `a+a+a+b`, and is how equal neighbors are printed.
`show` prints options in sorted order, and `parse(show(selector)) == selector` always holds.

>>> parse("bahdanau[score=additive[width=64],history=markov+tu_coverage]").show()
'bahdanau[history=markov+tu_coverage,score=additive[width=64]]'
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import Union

from bench.api.errors import InvalidSelector
from bench.api.plain_text import shortened

Scalar = bool | int | float
Value = Union[Scalar, tuple["Selector", ...]]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
LONGEST, DEEPEST = 20_000, 20
"""Characters of a selector, and its levels of brackets."""
MOST_QUOTED = 200
"""Characters of a selector that an error repeats."""

MOST_COPIES = 200
"""Copies of one name that a count may ask for."""

_COUNT = re.compile(r"(\d{1,9})\s*\*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![A-Za-z0-9_.])")


@dataclass(frozen=True)
class Selector:
    """A name with options; two selectors are equal if they print alike."""

    name: str
    options: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))

    def show(self) -> str:
        """Print in canonical form: keys sorted, no spaces."""
        return self._text if self.options else self.name

    @cached_property
    def _text(self) -> str:
        """Written once: planning compares selectors thousands of times."""
        inner = ",".join(f"{key}={show_value(self.options[key])}" for key in sorted(self.options))
        return f"{self.name}[{inner}]"

    def with_options(self, **changed: Value) -> "Selector":
        """Copy with some options set."""
        return Selector(self.name, {**self.options, **changed})

    def __str__(self) -> str:
        return self.show()

    def __hash__(self) -> int:
        return hash(self.show())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.show() == other.show()


def show_value(value: Value) -> str:
    """Print one option value; floats keep full precision."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    runs = ((shown, len([*same])) for shown, same in groupby(one.show() for one in value))
    return "+".join(shown if count == 1 else f"{count}*{shown}" for shown, count in runs)


def parse(text: str) -> Selector:
    """Read one selector; raise `InvalidSelector` naming the place that cannot be read."""
    return _parsed(_expect_text(text))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Selector:
    reader = _Reader(text)
    selector = reader.selector()
    reader.end("the end or '[', because one name stands here")
    return selector


def parse_list(text: str) -> list[Selector]:
    """Read a comma-separated list of selectors; commas inside brackets belong to the selector."""
    reader = _Reader(_expect_text(text))
    found = [reader.selector()]
    while reader.accept(","):
        found.append(reader.selector())
    reader.end("the end, ',' or '['")
    return found


def rounded(selector: Selector) -> Selector:
    """The selector with three digits of each number, for a line to read: it is another variant.

    >>> rounded(parse("additive[normalizer=softmax[temperature=1.6051911],width=253]")).show()
    'additive[normalizer=softmax[temperature=1.61],width=253]'
    """
    return Selector(selector.name, {key: _rounded(old) for key, old in selector.options.items()})


def _rounded(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(rounded, value))
    return float(f"{value:.3g}") if isinstance(value, float) else value


def parse_names(text: str) -> tuple[Selector, ...]:
    """Read names joined by '+'."""
    return _parsed_names(_expect_text(text))


@lru_cache(maxsize=4096)
def _parsed_names(text: str) -> tuple[Selector, ...]:
    reader = _Reader(text)
    found = [reader.selector()]
    while reader.accept("+"):
        found.append(reader.selector())
    reader.end("the end, '+' or '['")
    return tuple(found)


def walk(selector: Selector) -> Iterator[Selector]:
    """Visit the selector and every selector nested in its options."""
    yield selector
    for value in selector.options.values():
        if isinstance(value, tuple):
            for inner in value:
                yield from walk(inner)


def _expect_text(text: str) -> str:
    """Refuse what is no text, before it is looked up: lists have no hash."""
    if not isinstance(text, str):
        raise InvalidSelector(f"a name or a selector is a text, got {text!r}.")
    return text


class _Reader:
    """A cursor over the text; one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        if len(text) > LONGEST:
            raise InvalidSelector(
                f"a selector or a list of them has at most {LONGEST} characters, and "
                f"{self.quoted} ... has {len(text)}; write less at once."
            )

    @property
    def quoted(self) -> str:
        """The text in an error: no more of it than a reader can take in."""
        return repr(shortened(self.text, MOST_QUOTED))

    def fail(self, expected: str) -> InvalidSelector:
        found = repr(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end"
        return InvalidSelector(
            f"cannot read {self.quoted} at position {self.at}: expected {expected}, found {found}; "
            "write name[key=value,...], for example additive[width=64]."
        )

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def accept(self, mark: str) -> bool:
        self.skip()
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def end(self, expected: str) -> None:
        self.skip()
        if self.at < len(self.text):
            raise self.fail(expected)

    def word(self) -> str:
        self.skip()
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise self.fail("a name")
        self.at = match.end()
        return match.group()

    def selector(self) -> Selector:
        name = self.word()
        if not self.accept("["):
            return Selector(name)
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"at most {DEEPEST} levels of brackets")
        options: dict[str, Value] = {}
        while not self.accept("]"):
            if options and not self.accept(","):
                raise self.fail("',' or ']'")
            key = self.word()
            if key in options:
                raise InvalidSelector(f"option {key!r} is given twice in {self.quoted}; keep one.")
            if not self.accept("="):
                raise self.fail("'='")
            options[key] = self.value()
        self.depth -= 1
        return Selector(name, options)

    def term(self) -> list[Selector]:
        self.skip()
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return [self.selector()]
        count = int(match.group(1))
        if not 1 <= count <= MOST_COPIES:
            raise self.fail(f"a count from 1 to {MOST_COPIES}")
        self.at = match.end()
        return [self.selector()] * count

    def value(self) -> Value:
        self.skip()
        match = _NUMBER.match(self.text, self.at)
        if match is not None and _COUNT.match(self.text, self.at) is None:
            self.at = match.end()
            digits = match.group()
            if math.isinf(float(digits)):
                self.at = match.start()
                raise self.fail("a number that a float can hold")
            return int(digits) if re.fullmatch(r"[+-]?\d+", digits) else float(digits)
        found = self.term()
        while self.accept("+"):
            found += self.term()
        if len(found) == 1 and found[0].name in ("true", "false") and not found[0].options:
            return found[0].name == "true"
        return tuple(found)
