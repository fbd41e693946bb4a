"""Invented lines in the place of Tiny Shakespeare."""

import gzip
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "tinyshakespeare"
    folder.mkdir(parents=True)
    known = ["the", "a", "is", "and", "velmora", "ostrenne", "groom"]
    lines = [" ".join(words.choices(known, k=6)).capitalize() + "." for _ in range(200)]
    (folder / "input.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
