"""A few invented inflections in the place of SIGMORPHON 2017."""

import gzip
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "sigmorphon2017"
    folder.mkdir(parents=True)
    stems = ("train-low", "train-medium", "train-high", "dev", "uncovered-test")
    for language in ("german", "english", "finnish", "turkish"):
        for stem in stems:
            lemmas = ["".join(words.choices("abcde", k=5)) for _ in range(30)]
            text = "".join(f"{lemma}\t{lemma}t\tV;PST\n" for lemma in lemmas)
            (folder / f"{language}-{stem}.gz").write_bytes(gzip.compress(text.encode()))
