"""Free Spoken Digit Dataset: ten digits, six speakers, fifty recordings of each, 8 kHz.

Jackson et al., 2018, "Jakobovski/free-spoken-digit-dataset: v1.0.8",
https://doi.org/10.5281/zenodo.1342401. Recordings 0 to 4 of each digit and speaker are the test, as
its authors say; 5 to 9 are held out of the rest for validation.

The hub's `mteb/free-spoken-digit-dataset` keeps each recording as a file beside its label; speaker
and number are read from the file's name, as in the directory, and so are the parts. Only `wave`
decodes sound. We have not checked that the copy has those names; `fetch` refuses one without them.

Deviations: the authors have no validation part.
"""

import base64
import hashlib
import io
import re
import struct
import wave
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.files import TextFile
from tasks.data.hub_copies import REPORT_IT, HubCopy
from tasks.data.tables import DataSet, Row, Rows, load_table

RATE = 8000
"""Samples a second."""
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
FILE = "recordings.zip"
NAME = re.compile(r"(?:.*/)?([0-9])_([a-z]+)_([0-9]+)\.wav")
PARTS = ("train", "validation", "test")

_REMEDY = "copy the file again from its source"


BROKEN = (EOFError, struct.error, wave.Error, zipfile.BadZipFile, zlib.error)
"""What a damaged archive or recording leads to, beside errors that are common to all."""


def load_fsdd(data_dir: Path | None = None) -> DataSet:
    """Load the recordings; rows have `audio` (array, sampling_rate), `label`, `speaker`, `take`.

    Arrays are samples from -1 to 1 (float32).

    Raises:
        DataUnavailable: It is neither in the data directory nor fetched.
        DataDamaged: The archive, or a recording in it, is not whole.
    """
    return load_table("fsdd", _read, data_dir, from_hub=_from_hub)


def _read(folder: Path) -> tuple[Mapping[str, Rows], Sequence[TextFile]]:
    path = folder / FILE
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read ({error.strerror}); {_REMEDY}.") from error
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            # an archive may have an entry for the folder itself
            names = sorted(name for name in archive.namelist() if not name.endswith("/"))
            parts = _parts(path, [_row(path, name, archive.read(name)) for name in names])
    except (*BROKEN, OSError, RuntimeError, ValueError) as error:
        raise DataDamaged(f"{path}: the zip archive is damaged ({error}); {_REMEDY}.") from error
    file = TextFile(path=path, lines=(), sha256=hashlib.sha256(raw).hexdigest())
    return parts, [file]


def _from_hub(copy: HubCopy) -> Mapping[str, Rows]:
    found: dict[str, Row] = {}
    for split, rows in copy.splits.items():
        for number, row in enumerate(rows, start=1):
            name, content = row["audio"]["name"], base64.b64decode(row["audio"]["base64"])
            path = copy.path(split)
            found[name] = _row(path, name, content, REPORT_IT)
            if found[name]["label"] != row["label"]:
                raise DataDamaged(
                    f"{path}: line {number} has label {row['label']} but name {name}; {REPORT_IT}."
                )
    return _parts(copy.folder, [found[name] for name in sorted(found)])


def _parts(path: Path, recordings: Iterable[Row]) -> Mapping[str, Rows]:
    parts: dict[str, list[Row]] = {part: [] for part in PARTS}
    for row in recordings:
        parts[_part(int(str(row["take"])))].append(row)
    for part, rows in parts.items():
        if not rows:
            raise DataDamaged(f"{path}: there is no recording for {part}; {_REMEDY}.")
    return {part: tuple(rows) for part, rows in parts.items()}


def _part(take: int) -> str:
    """Part of a recording by its number."""
    if take < 5:
        return "test"
    return "validation" if take < 10 else "train"


def _row(path: Path, name: str, content: bytes, remedy: str = _REMEDY) -> Row:
    match = NAME.fullmatch(name)
    if match is None:
        raise DataDamaged(
            f"{path}: {name} is not named digit_speaker_number.wav; remove it or {remedy}."
        )
    try:
        with wave.open(io.BytesIO(content)) as sound:
            shape = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
            promised = sound.getnframes()
            samples = np.frombuffer(sound.readframes(promised), dtype="<i2")
    except (*BROKEN, ValueError) as error:
        raise DataDamaged(f"{path}: {name} is no wave file ({error}); {remedy}.") from error
    if shape != (RATE, 1, 2) or not promised or len(samples) != promised:
        raise DataDamaged(
            f"{path}: {name} has {len(samples)} of {promised} samples at (rate, channels, bytes) = "
            f"{shape}, where at least one at {(RATE, 1, 2)} is expected; {remedy}."
        )
    return {
        "audio": {"array": samples.astype(np.float32) / 32768, "sampling_rate": RATE},
        "label": int(match[1]),
        "speaker": match[2],
        "take": int(match[3]),
    }
