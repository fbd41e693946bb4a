"""What a user may type: selectors, lists, labels, options and their values."""

import random
from collections.abc import Iterator
from pathlib import Path

from bench.api import registry
from bench.api.axes import AXES
from bench.api.cell import parse_label
from bench.api.config import build_config
from bench.api.resolve import resolve
from bench.api.selector import parse, parse_list, parse_names
from bench.running.plan import plan
from bench.running.request import Request
from tests.fuzz.law import Attack, Broken, Case

MARKS = (
    "[",
    "]",
    "=",
    ",",
    "+",
    " ",
    "/",
    "@",
    ".",
    "-",
    "\n",
    "\0",
    "é",
    "\ud800",
    "🙂",
    "'",
    "%s",
)
NUMBERS = ("0", "-1", "1", "3", "1e400", "-0.0", "9" * 400, "1e308", "1e-320", "nan", "inf", "0x1")


def _names() -> list[str]:
    return [name for axis in AXES for name in registry.registrations(axis)] + [*AXES, "all", "none"]


def _text(chance: random.Random, names: list[str]) -> str:
    """Something like a selector, with mistakes."""
    match chance.randrange(8):
        case 0:
            mark = chance.choice(("[", "a[b=", "a+", ",", "a[b=c,", "]", "a,"))
            return mark * chance.choice((3, 300, 30_000))
        case 1:
            return "".join(chance.choice((*MARKS, *NUMBERS, *names)) for _ in range(12))
        case _:
            return _selector(chance, names, 0)


def _selector(chance: random.Random, names: list[str], depth: int) -> str:
    name = chance.choice(names)
    if chance.random() < 0.4 or depth > 3:
        return name
    keys = ("scale", "width", "steps", "lr", *AXES, "size", "layers", "x", name)
    options = []
    for _ in range(chance.choice((1, 1, 2, 4))):
        inner = chance.random() < 0.4
        value = _selector(chance, names, depth + 1) if inner else chance.choice(NUMBERS + MARKS)
        options.append(f"{chance.choice(keys)}={value}")
    text = f"{name}[{','.join(options)}]"
    if chance.random() < 0.2:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(MARKS) + text[at + 1 :]
    return text


def read_texts(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Reading selectors; what is read prints as it reads."""
    names = _names()
    while True:
        text = _text(chance, names)
        yield text, lambda text=text: _read(text)


def _read(text: str) -> None:
    for reader in (parse_list, parse_names, parse_label, resolve, parse):
        try:
            found = reader(text)
        except Exception as error:
            if type(error).__module__ != "bench.api.errors":
                raise
            continue
        if reader is parse and parse(found.show()) != found:
            raise Broken(f"{found.show()!r} reads back as something else")


def options_of_names(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Every option of everything registered, with values of every kind."""
    known = [one for axis in AXES for one in registry.registrations(axis).values()]
    values = (True, False, 0, -1, 1, 10**30, 0.5, -1e308, 1e-320, (parse("dot"),), (parse("x"),))
    while True:
        one = chance.choice(known)
        names = [*one.config.__dataclass_fields__, "other"]
        given = {name: chance.choice(values) for name in chance.sample(names, min(2, len(names)))}
        yield (
            f"{one.axis} {one.name} {given}",
            lambda one=one, given=given: build_config(one.config, given, one.name),
        )


def requests(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Plans of wrong requests."""
    names = _names()
    fields = ("variants", "tasks", "backbone", "slot", "training", "baseline", "preset", "impl")
    numbers = {"seeds": (-1, 0, 2), "first_seed": (-1, 2**64), "minutes": (-1.0, 1e300)}
    while True:
        given: dict[str, object] = {"variants": "dot", "tasks": "recall", "preset": "smoke"}
        for name in chance.sample(fields, chance.choice((1, 1, 2))):
            given[name] = _text(chance, names)
        for name in numbers if chance.random() < 0.3 else ():
            given[name] = chance.choice(numbers[name])
        yield str(given), lambda given=given: plan(Request(**given))


ATTACKS = (
    Attack("selectors", read_texts, few=300, many=6000),
    Attack("options", options_of_names, few=500, many=20_000),
    Attack("requests", requests, few=60, many=1500),
)
