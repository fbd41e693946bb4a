"""One part of the tests, or of the variants that the slow smoke run trains.

`python -m tests.parts 3/10` prints the names of the variants of the third of ten parts, and `all`
for the whole.
"""

import argparse
import sys
import zlib

from bench.api import registry
from bench.api.loading import load_package

Part = tuple[int, int]
"""Number of a part, from 1, and how many there are."""


def read_part(asked: str) -> Part:
    """A part from its text, `K/N`.

    Raises:
        ArgumentTypeError: It is none.
    """
    part, _, parts = asked.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{asked!r} is no part; write K/N, such as 1/8 or 8/8")
    return int(part), int(parts)


def in_part(name: str, part: Part) -> bool:
    """Whether a name belongs to a part; each name belongs to one, whatever the others are."""
    return zlib.crc32(name.encode()) % part[1] + 1 == part[0]


def variants_of(part: Part) -> str:
    """Names of the variants of a part with commas between them, or `all`."""
    if part == (1, 1):
        return "all"
    load_package("variants")
    return ",".join(name for name in registry.listed_variants() if in_part(name, part))


if __name__ == "__main__":
    print(variants_of(read_part(sys.argv[1])))
