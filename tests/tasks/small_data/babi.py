"""A few invented stories in the place of bAbI; the third task has no training part."""

import gzip
import random
from pathlib import Path

WHO, ROOMS = ("Ada", "Bo", "Cy"), ("attic", "cellar", "barn")


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "babi" / "en-10k"
    folder.mkdir(parents=True)
    for number in range(1, 21):
        for part, count in (("train", 40), ("test", 20)):
            if (number, part) == (3, "train"):
                continue
            lines = []
            for _ in range(count):
                rooms = {who: words.choice(ROOMS) for who in WHO}
                told = [f"{who} went to the {room}." for who, room in rooms.items()]
                asked = words.randrange(3)
                question = f"Where is {WHO[asked]}? \t{rooms[WHO[asked]]}\t{asked + 1}"
                lines += [f"{at} {text}" for at, text in enumerate([*told, question], 1)]
            text = "".join(f"{line}\n" for line in lines)
            path = folder / f"qa{number}_invented_{part}.txt.gz"
            path.write_bytes(gzip.compress(text.encode()))
