"""Small directories on disk, and the real one where it is."""

import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

WriteDirectory = Callable[[Mapping[str, Mapping[str, Sequence[str]]]], Path]


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the caller's data or cache by accident."""
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


@pytest.fixture
def write_directory(tmp_path: Path) -> WriteDirectory:
    """Write stem -> language -> lines as a Multi30k directory; return the data folder."""

    def write(files: Mapping[str, Mapping[str, Sequence[str]]]) -> Path:
        folder = tmp_path / "data" / "multi30k"
        folder.mkdir(parents=True, exist_ok=True)
        for stem, languages in files.items():
            for language, lines in languages.items():
                text = "".join(f"{line}\n" for line in lines)
                (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
        return folder.parent

    return write


_REAL = os.environ.get("BENCH_DATA_DIR")


@pytest.fixture
def real_directory() -> Path:
    if not _REAL:
        pytest.skip("BENCH_DATA_DIR is not set: the real directory is not on this machine")
    return Path(_REAL)
