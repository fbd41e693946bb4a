"""A few invented e-mails in the place of AESLC."""

import gzip
import json
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "aeslc"
    folder.mkdir(parents=True)
    for stem in ("train", "dev", "test"):
        lines = []
        for _ in range(40):
            body = words.choices([f"word{n}" for n in range(400)], k=20)
            row = {"email_body": " ".join(body), "subject_line": " ".join(body[:3])}
            others = {f"ann{n}": " ".join(body[n : n + 2]) for n in range(3)}
            lines.append(json.dumps(row if stem == "train" else row | others) + "\n")
        (folder / f"{stem}.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))
