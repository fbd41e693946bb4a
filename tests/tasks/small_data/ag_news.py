"""A little invented text in the place of AG News."""

import gzip
import random
from pathlib import Path

TOPICS = ("World", "Sports", "Business", "Sci/Tech")


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "ag_news"
    folder.mkdir(parents=True)
    for stem in ("dev", "test"):
        texts = [
            " ".join(words.choices(["goal", "vote", "share", "chip", "a", "the"], k=9))
            for _ in range(60)
        ]
        lines = "".join(f"{text} {stem}.\t{TOPICS[at % 4]}\n" for at, text in enumerate(texts))
        (folder / f"{stem}.tsv.gz").write_bytes(gzip.compress(lines.encode()))
