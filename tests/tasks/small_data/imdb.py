"""A little invented text in the place of IMDB."""

import gzip
import json
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "imdb"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        lines = []
        for at in range(60):
            some = (
                words.choices(["good", "bad", "dull", "fine", "plot"], k=5)
                for _ in range(1 + at % 4)
            )
            text = " ".join(f"{' '.join(sentence)} {part}." for sentence in some)
            lines.append(json.dumps({"id": str(at), "text": text, "label": at % 2}) + "\n")
        (folder / f"{part}.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))
