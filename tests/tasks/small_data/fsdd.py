"""A little invented noise in the place of spoken digits."""

import io
import random
import wave
import zipfile
from array import array
from pathlib import Path


def recording(words: random.Random, samples: int = 900) -> bytes:
    sound = array("h", (words.randrange(-3000, 3000) for _ in range(samples)))
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(sound.tobytes())
    return buffer.getvalue()


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "fsdd"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "recordings.zip", "w") as archive:
        archive.writestr("recordings/", "")
        for digit in range(4):
            for speaker in ("ann", "bob"):
                for take in range(14):
                    name = f"recordings/{digit}_{speaker}_{take}.wav"
                    archive.writestr(name, recording(words, 600 + 10 * take))
