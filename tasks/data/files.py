"""Files of the data directory, read strictly: a damaged file is an error, not a shorter corpus."""

import gzip
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.api.errors import DataDamaged, DataUnavailable

_REMEDY = "copy the file again from its source"
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """The lines of one file and the hash of its bytes as stored."""

    path: Path
    lines: tuple[str, ...]
    sha256: str


def read_text(path: Path, *, allow_blank: bool = False) -> TextFile:
    r"""Read a UTF-8 text file, gzipped if its name ends in `.gz`, split on "\n" alone.

    Other separators (U+0085, U+2028, form feed) stay inside their line: `str.splitlines` would
    cut there and shift every later line of a parallel file. A byte-order mark at the start is
    dropped.

    Args:
        path: The file.
        allow_blank: Let rows of white space pass; a file without any row is still an error.

    Raises:
        DataUnavailable: There is no such file, or the system refuses to read it.
        DataDamaged: The file is damaged, truncated, empty, wrongly encoded or has blank rows.
    """
    raw = _read_bytes(path)
    lines = _decode(path, _decompress(path, raw)).removeprefix(_BYTE_ORDER_MARK).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not any(line.strip() for line in lines):
        raise DataDamaged(f"{path}: the file is empty (no text from line 1 on); {_REMEDY}.")
    _refuse_carriage_returns(path, lines)
    if not allow_blank:
        _refuse_blank_rows(path, lines)
    return TextFile(path=path, lines=tuple(lines), sha256=hashlib.sha256(raw).hexdigest())


def read_parallel(paths: Mapping[str, Path]) -> dict[str, TextFile]:
    """Read one file per language and insist that all have the same number of lines."""
    files = {language: read_text(path) for language, path in paths.items()}
    counts = {language: len(file.lines) for language, file in files.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{files[name].path} has {count} lines" for name, count in counts.items())
        first = min(counts.values()) + 1
        raise DataDamaged(f"parallel files are misaligned from line {first} on: {told}; {_REMEDY}.")
    return files


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DataUnavailable(f"{path} is missing; {_REMEDY}.") from error
    except OSError as error:
        raise DataUnavailable(
            f"{path} cannot be read ({error.strerror}); make it a readable file."
        ) from error


def _decompress(path: Path, raw: bytes) -> bytes:
    if path.suffix != ".gz" or not raw:
        return raw
    try:
        return gzip.decompress(raw)
    except EOFError as error:
        whole = _lines_before_the_cut(raw)
        raise DataDamaged(
            f"{path}: the gzip data ends too early, after line {whole}; {_REMEDY}."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        good = _lines_before_the_cut(raw)
        raise DataDamaged(
            f"{path}: the gzip data is damaged after line {good} ({error}); {_REMEDY}."
        ) from error


def _lines_before_the_cut(raw: bytes) -> int:
    """Count the whole lines that a broken gzip file still yields."""
    inflater, count = zlib.decompressobj(wbits=31), 0
    try:
        for start in range(0, len(raw), 1024):
            count += inflater.decompress(raw[start : start + 1024]).count(b"\n")
    except zlib.error:
        pass
    return count


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = (
            "UTF-16" if content.startswith(_UTF16_MARKS) else f"byte 0x{content[error.start]:02x}"
        )
        raise DataDamaged(
            f"{path}: line {line} is not UTF-8 ({found}); convert the file to UTF-8 or {_REMEDY}."
        ) from error


def _refuse_carriage_returns(path: Path, lines: list[str]) -> None:
    for number, line in enumerate(lines, start=1):
        if line.endswith("\r"):
            raise DataDamaged(
                f"{path}: line {number} ends in a carriage return; convert the line ends to \\n "
                f"or {_REMEDY}."
            )


def _refuse_blank_rows(path: Path, lines: list[str]) -> None:
    blank = [number for number, line in enumerate(lines, start=1) if not line.strip()]
    if blank:
        rows = "1 blank row" if len(blank) == 1 else f"{len(blank)} blank rows"
        raise DataDamaged(f"{path}: {rows}, the first at line {blank[0]}; {_REMEDY}.")
