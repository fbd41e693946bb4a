"""A few invented lines in the place of the pairs from Django."""

import gzip
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "django"
    folder.mkdir(parents=True)
    names = [(f"name{words.randrange(900)}", f"call{words.randrange(9)}") for _ in range(200)]
    anno = "".join(f"call the function {call} with {name}.\n" for name, call in names)
    code = "".join(f"{call} ( {name} )\n" for name, call in names)
    for kind, text in (("anno", anno), ("code", code)):
        (folder / f"all.{kind}.gz").write_bytes(gzip.compress(text.encode()))
