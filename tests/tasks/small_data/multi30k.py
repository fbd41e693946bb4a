"""A little invented text in the place of Multi30k."""

import gzip
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "multi30k"
    folder.mkdir(parents=True)
    for stem in ("train", "val", "test_2016_flickr"):
        lines = ["".join(words.choices("abc de", k=20)).strip() + "." for _ in range(30)]
        for language in ("de", "en", "fr", "cs"):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
