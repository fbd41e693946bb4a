"""Invented paragraphs in the place of WikiText-2."""

import gzip
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "wikitext2"
    folder.mkdir(parents=True)
    known = ["the", "of", "was", ",", "storm", "castle", "bishop", "river", "<unk>", "north"]
    for name in ("valid", "test"):
        lines = [" " + " ".join(words.choices(known, k=12)) + " . " for _ in range(200)]
        text = "\n".join([" ", " = Storm = ", " ", *lines]) + "\n"
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
