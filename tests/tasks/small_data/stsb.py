"""A few invented pairs in the place of STS-B."""

import json
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "stsb"
    folder.mkdir()
    for part, count in (("train", 60), ("validation", 30), ("test", 30)):
        lines = []
        for _ in range(count):
            one, two = (" ".join(words.choices(("owl", "elf", "sings"), k=4)) for _ in range(2))
            row = {"sentence1": one, "sentence2": two, "score": words.randrange(6) / 5}
            lines.append(json.dumps(row) + "\n")
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
