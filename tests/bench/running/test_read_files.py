"""Which data files a cell read, whoever opened them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from bench.api.opened_files import watch_opened
from bench.running.read_files import DataFiles


@pytest.fixture
def folders(tmp_path, monkeypatch):
    for name in ("data", "cache"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_files_are_seen_however_they_are_opened(folders):
    data = folders / "data"
    for name in ("text.txt", "raw.bin", "low.bin"):
        (data / name).write_text("a line\n")
    with gzip.open(data / "packed.gz", "wt") as file:
        file.write("a line\n")
    np.savez(data / "arrays.npz", numbers=np.arange(3))
    with watch_opened() as opened:
        (data / "text.txt").read_text()
        with open(data / "raw.bin", "rb"):  # noqa: PTH123  as a plug-in may
            pass
        os.close(os.open(data / "low.bin", os.O_RDONLY))
        with gzip.open(data / "packed.gz") as packed:
            packed.read()
        np.load(data / "arrays.npz")["numbers"]
        (data / "written.txt").write_text("not read")
    found = DataFiles(data).hashes(opened)
    names = ("arrays.npz", "low.bin", "packed.gz", "raw.bin", "text.txt")
    assert [*found] == [f"data/{name}" for name in names]
    assert all(len(digest) == 12 for digest in found.values())


def test_nothing_is_collected_outside_of_the_block(folders):
    with watch_opened() as opened:
        pass
    (folders / "data" / "text.txt").write_text("a line\n")
    (folders / "data" / "text.txt").read_text()
    assert not opened


def test_what_lies_elsewhere_and_what_the_cache_made_is_no_data(folders):
    (folders / "cache" / "made.npz").write_text("x")
    (folders / "cache" / "train.jsonl").write_text("{}\n")
    (folders / "elsewhere.txt").write_text("x")
    (folders / "data" / "code.py").write_text("x = 1\n")
    opened = {str(path) for path in folders.rglob("*") if path.is_file()}
    assert [*DataFiles(folders / "data").hashes(opened)] == ["cache/train.jsonl"]


@pytest.mark.parametrize("folder_is_a_link", [False, True])
def test_what_lies_behind_a_link_in_the_data_directory_is_data(folders, folder_is_a_link):
    disk, data = folders / "disk", folders / "data"
    disk.mkdir()
    (disk / "large.txt").write_text("a line\n")
    (data / "plain.txt").write_text("a line\n")
    if folder_is_a_link:
        (data / "set").symlink_to(disk)
        name = "data/set/large.txt"
    else:
        (data / "large.txt").symlink_to(disk / "large.txt")
        name = "data/large.txt"
    (folders / "link").symlink_to(data)
    for given in (data, folders / "link"):
        opened = {str(given / name.removeprefix("data/")), str(data / "plain.txt")}
        stored = DataFiles(given).hashes(opened)
        assert {*stored} == {name, "data/plain.txt"}
        assert DataFiles(data).changed(stored) == DataFiles(folders / "link").changed(stored) == []
    (disk / "large.txt").write_text("another line\n")
    assert DataFiles(data).changed(stored) == [name]


def test_other_content_is_a_change_and_a_missing_file_is_none(folders):
    data = folders / "data"
    (data / "text.txt").write_text("a line\n")
    stored = DataFiles(data).hashes({str(data / "text.txt")})
    assert DataFiles(data).changed(stored) == []
    (data / "text.txt").write_text("another line\n")
    assert DataFiles(data).changed(stored) == ["data/text.txt"]
    (data / "text.txt").unlink()
    assert DataFiles(data).changed(stored) == []


def test_a_process_reads_a_file_once_until_it_is_written_again(folders, monkeypatch):
    path = folders / "data" / "text.txt"
    path.write_text("a line\n")
    reads, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: reads.append(self) or read_bytes(self))

    def found():
        return DataFiles(folders / "data").hashes({str(path)})["data/text.txt"]

    first = found()
    assert found() == first
    assert len(reads) == 1
    written = path.stat()
    path.write_text("b line\n")
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert found() != first
    assert len(reads) == 2


def test_a_data_directory_that_is_not_there_is_left_to_the_cells(folders):
    assert DataFiles(folders / "nowhere").hashes({str(folders / "nowhere" / "x")}) == {}
