"""Free Spoken Digit Dataset: ten digits, six speakers, fifty recordings of each, 8 kHz.

Jackson et al., 2018, "Jakobovski/free-spoken-digit-dataset: v1.0.8",
https://doi.org/10.5281/zenodo.1342401. Recordings 0 to 4 of each digit and speaker are the test, as
its authors say; 5 to 9 are held out of the rest for validation.

Deviations: the authors have no validation part.
"""

import hashlib
import io
import re
import wave
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.sources.mirror import TextFile
from tasks.sources.tables import Row, Rows, Table, load_table

RATE = 8000
"""Samples a second."""
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
FILE = "recordings.zip"
NAME = re.compile(r"(?:.*/)?([0-9])_([a-z]+)_([0-9]+)\.wav")
PARTS = ("train", "validation", "test")

_REMEDY = "copy the file again from its source"


def load_fsdd(data_dir: Path | None = None) -> Table:
    """Load the recordings; rows have `audio` (array, sampling_rate), `label`, `speaker`, `take`.

    Arrays are samples from -1 to 1 (float32).

    Raises:
        DataUnavailable: The mirror is not on this machine.
        DataDamaged: The archive, or a recording in it, is not whole.
    """
    return load_table("fsdd", _read, data_dir)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    path = folder / FILE
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read ({error.strerror}); {_REMEDY}.") from error
    parts: dict[str, list[Row]] = {part: [] for part in PARTS}
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for name in sorted(archive.namelist()):
                row = _row(path, name, archive.read(name))
                parts[_part(int(str(row["take"])))].append(row)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise DataDamaged(f"{path}: the zip archive is damaged ({error}); {_REMEDY}.") from error
    for part, rows in parts.items():
        if not rows:
            raise DataDamaged(f"{path}: there is no recording for {part}; {_REMEDY}.")
    file = TextFile(path=path, lines=(), sha256=hashlib.sha256(raw).hexdigest())
    return {part: tuple(rows) for part, rows in parts.items()}, [file]


def _part(take: int) -> str:
    """Part of a recording by its number."""
    if take < 5:
        return "test"
    return "validation" if take < 10 else "train"


def _row(path: Path, name: str, content: bytes) -> Row:
    match = NAME.fullmatch(name)
    if match is None:
        raise DataDamaged(
            f"{path}: {name} is not named digit_speaker_number.wav; remove it or {_REMEDY}."
        )
    try:
        with wave.open(io.BytesIO(content)) as sound:
            shape = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
            promised = sound.getnframes()
            samples = np.frombuffer(sound.readframes(promised), dtype="<i2")
    except (wave.Error, EOFError, ValueError) as error:
        raise DataDamaged(f"{path}: {name} is no wave file ({error}); {_REMEDY}.") from error
    if shape != (RATE, 1, 2) or not promised or len(samples) != promised:
        raise DataDamaged(
            f"{path}: {name} has {len(samples)} of {promised} samples at (rate, channels, bytes) = "
            f"{shape}, where at least one at {(RATE, 1, 2)} is expected; {_REMEDY}."
        )
    return {
        "audio": {"array": samples.astype(np.float32) / 32768, "sampling_rate": RATE},
        "label": int(match[1]),
        "speaker": match[2],
        "take": int(match[3]),
    }
