"""A little invented text in the place of SST-2."""

import gzip
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "sst2_sentences"
    folder.mkdir(parents=True)
    for stem in ("train", "dev", "test"):
        rows = [
            (" ".join(words.choices(["good", "bad", "dull", "fine", "a", "the"], k=7)), at % 2)
            for at in range(40)
        ]
        text = "".join(f"{sentence} {stem}\t{label}\n" for sentence, label in rows)
        (folder / f"{stem}.tsv.gz").write_bytes(gzip.compress(text.encode()))
