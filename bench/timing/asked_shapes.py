"""Shapes as they are typed: `B=4,H=16,L=1024+4096,E=64`, or the name of some.

`slot` in front times attention with its heads: `slot,B=1,L=4096`.
"""

from collections.abc import Iterable
from itertools import product

from bench.api.config import LARGEST, build_config
from bench.api.errors import MOST_QUOTED, InvalidConfig, UnknownName
from bench.api.plain_text import shortened
from bench.api.selector import Selector, Value
from bench.timing.shape import PLACES, AttendShape

LETTERS = {"B": "batch", "H": "heads", "L": "length", "E": "width"}
"""PyTorch's letters, and the option of `attend` that each one sets."""

NAMED = {
    "small": "B=2,H=2,L=64+128+256,E=32",
    "model": "B=4,H=16,L=1024+4096,E=64",
    "long": "B=1,H=16,L=8192+16384+32768,E=64",
    "serving": "slot,B=1+8+64,H=8,L=256+1024+4096+8192,E=64",
    "serving_long": "slot,B=1,H=8,L=32768+131072,E=64",
}
"""Shapes with a name: of a small network, of a layer of a language model, of long texts, and of a
layer with its heads as a model that answers users has it, also for long prompts."""

SERVED = (
    "rounds[count=16,visit_ms=30,samples=1,budget_ms=1500,least=3,workloads=forward+decode_step]"
)
"""How slots are timed: a prompt is read, and a token is decoded. Many rounds, because a step reads
the whole cache, which whoever was timed before has pushed out of that of the processor."""
MOST_NUMBERS = 2**34
"""Numbers of the queries of a shape; keys, values and answers with them fill 275 GB in float32."""
MOST_WIDTH = 2**17
"""Width of all heads together; a map from so many numbers to as many has `MOST_NUMBERS`."""
MOST_DIGITS = 18
"""Digits of a size that are read at all."""
MOST_MB, MOST_S = 8000.0, 5.0
"""What one call may hold (MB) and take (s) in slots that nobody asked for one by one."""


def asked_shapes(texts: Iterable[str]) -> list[AttendShape]:
    """Every combination of the sizes of each text, in order, without repetition.

    >>> [shape.show() for shape in asked_shapes(["H=4,L=8+16"])]
    ['attend[heads=4,length=8]', 'attend[heads=4,length=16]']

    Args:
        texts: Letters with one size or with several joined by `+`, or a name. A letter that is not
            there keeps the default of `attend`. Sizes are numbers of rows, heads, vectors and
            components of a vector. `slot,` in front asks for the heads, too.

    Raises:
        UnknownName: No such letter or name.
        InvalidConfig: A size is no whole number above 0, or too large, or a letter comes twice.
    """
    found: dict[AttendShape, None] = {}
    for text in texts:
        place, sizes = _placed(NAMED.get(text, text))
        for chosen in product(*sizes.values()):
            options: dict[str, Value] = dict(zip(sizes, chosen, strict=True))
            if place != PLACES[0]:
                options["place"] = (Selector(place),)
            shape = build_config(AttendShape, options, "attend")
            _refuse_what_fits_nowhere(text, shape)
            found[shape] = None
    return list(found)


def _refuse_what_fits_nowhere(text: str, shape: AttendShape) -> None:
    """Refuse a shape before a plan has it: no machine could hold what it is made of.

    Raises:
        InvalidConfig: A size or a product of sizes is too large.
    """
    width = shape.heads * shape.width
    for what, numbers, most in (
        ("B * H * L * E", shape.batch * shape.length * width, MOST_NUMBERS),
        ("H * E", width, MOST_WIDTH),
    ):
        if numbers > most:
            raise InvalidConfig(
                f"shape {shortened(text, MOST_QUOTED)!r}: {what} is at most {most}, got "
                f"{numbers}; ask for less at once."
            )


def _placed(text: str) -> tuple[str, dict[str, list[int]]]:
    """What is timed, and its sizes."""
    first, _, rest = text.partition(",")
    place = first.strip()
    if place not in PLACES:
        return PLACES[0], _sizes(text)
    return place, _sizes(rest) if rest else {}


def _sizes(text: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for part in text.split(","):
        letter, equals, values = part.strip().partition("=")
        if not equals:
            raise UnknownName.among("shape", text, NAMED)
        if letter not in LETTERS:
            raise UnknownName.among("letter of a shape", letter, LETTERS)
        if LETTERS[letter] in found:
            raise InvalidConfig(f"shape {text!r} says {letter} twice; join its sizes by +.")
        found[LETTERS[letter]] = [_size(text, value) for value in values.split("+")]
    return found


def _size(text: str, value: str) -> int:
    whole = value.isascii() and value.isdecimal()
    if not whole or len(value) > MOST_DIGITS or not 0 < int(value) <= LARGEST:
        most = f" and at most {LARGEST}" if whole and value.strip("0") else ""
        raise InvalidConfig(
            f"shape {shortened(text, MOST_QUOTED)!r}: a size is a whole number above 0{most}, got "
            f"{shortened(value, MOST_QUOTED)!r}; "
            "type it like B=4,H=16,L=1024+4096,E=64."
        )
    return int(value)
