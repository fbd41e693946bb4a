"""A few invented pairs in the place of SNLI and its revisions."""

import gzip
import random
from pathlib import Path

NUMBERS = {"neutral": 1, "contradiction": 2, "entailment": 3}


def write(directory: Path, words: random.Random) -> None:
    def pairs(count):
        told = (
            " ".join(words.choices(("dragon", "ghost", "witch", "counts", "hides"), k=5))
            for _ in range(2 * count)
        )
        return [(*two, words.choice(tuple(NUMBERS))) for two in zip(told, told, strict=True)]

    def put(name, lines):
        path = directory / "snli" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))

    for part, count in (("train", 60), ("test", 8)):
        rows = [(NUMBERS[label], one, two) for one, two, label in pairs(count)]
        put(f"cat/{part}.csv.gz", [f"{n}\t{n}\t{one}.\t{two}." for n, one, two in rows])
    for part in ("dev", "test"):
        columns = zip(*pairs(40), strict=True)
        for name, column in zip(("s1", "s2", "labels"), columns, strict=True):
            put(f"esnli/{name}.{part}.gz", [f"{text} " for text in column])
    for kind in ("original", "revised_premise", "revised_hypothesis"):
        for part in ("dev", "test"):
            lines = ["\t".join(pair) for pair in pairs(12)]
            put(f"cad/{kind}/{part}.tsv.gz", ["sentence1\tsentence2\tgold_label", *lines])
