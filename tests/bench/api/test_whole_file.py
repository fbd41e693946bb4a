"""A file that is replaced as a whole is the old one or the new one, whatever happens."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.api import whole_file
from bench.api.opened_files import watch_opened
from bench.api.whole_file import remove_drafts, written_whole

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from bench.api.whole_file import written_whole
with written_whole(Path(sys.argv[1])) as draft:
    draft.write_text("half of the new")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path):
    held = tmp_path / "folder" / "file.txt"
    held.parent.mkdir()
    held.write_text("old")
    return held


def beside(path):
    return {one.name for one in path.parent.iterdir()}


@pytest.mark.parametrize("durable", [True, False])
def test_a_draft_takes_the_place_of_the_file(path, durable):
    with written_whole(path, durable=durable) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
        assert draft.parent == path.parent
    assert path.read_text() == "new"
    assert beside(path) == {"file.txt"}


def test_a_folder_that_is_missing_is_made(tmp_path):
    with written_whole(tmp_path / "one" / "two" / "file") as draft:
        draft.write_bytes(b"new")
    assert (tmp_path / "one" / "two" / "file").read_bytes() == b"new"


def test_what_a_killed_writer_left_is_removed_and_nothing_else(path):
    subprocess.run([sys.executable, "-c", KILLED, path], cwd=ROOT, check=False)
    path.with_name("file.txt.copy").write_text("beside it")
    assert len(beside(path)) == 3
    remove_drafts(path.parent, path.name)
    assert beside(path) == {"file.txt", "file.txt.copy"}
    remove_drafts(path.parent / "nowhere", path.name)


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("durable", [True, False])
def test_an_error_while_writing_leaves_the_old_file_and_no_draft(path, durable, error):
    def half():
        with written_whole(path, durable=durable) as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(error):
        half()
    assert path.read_text() == "old"
    assert beside(path) == {"file.txt"}


@pytest.mark.parametrize("place", ["while writing", "at the end"])
def test_what_the_system_forbids_names_the_file_and_not_its_draft(path, monkeypatch, place):
    def forbidden(draft, *_):
        # pyarrow has the place in a sentence of its own
        raise PermissionError(errno.EACCES, f"Failed to open local file '{draft}'")

    def write():
        with written_whole(path, durable=False) as draft:
            if place == "while writing":
                forbidden(draft)
            draft.write_text("new")

    if place == "at the end":
        monkeypatch.setattr(Path, "replace", forbidden)
    with pytest.raises(PermissionError) as error:
        write()
    assert str(error.value) == f"[Errno 13] Permission denied: '{path}'"
    assert beside(path) == {"file.txt"}


def test_a_folder_in_the_place_of_the_file_is_named_once(tmp_path):
    with pytest.raises(IsADirectoryError) as error, written_whole(tmp_path) as draft:
        draft.write_text("new")
    assert str(error.value) == f"[Errno 21] Is a directory: '{tmp_path}'"


def test_an_error_about_another_file_stays_as_it_is(path, tmp_path):
    with pytest.raises(FileNotFoundError) as error, written_whole(path):
        (tmp_path / "other").read_text()
    assert error.value.filename == str(tmp_path / "other")


@pytest.mark.parametrize("durable", [True, False])
def test_a_draft_that_nobody_wrote_is_an_error(path, durable):
    with pytest.raises(FileNotFoundError), written_whole(path, durable=durable):
        pass
    assert path.read_text() == "old"


def test_a_disk_that_does_not_take_it_leaves_the_old_file(path, monkeypatch):
    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(whole_file.os, "fsync", full)
    with pytest.raises(OSError, match="no space"), written_whole(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "old"
    assert beside(path) == {"file.txt"}
    with written_whole(path, durable=False) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"


def test_the_file_is_on_the_disk_before_its_name_and_then_the_folder(path, monkeypatch):
    synced, fsync = [], os.fsync

    def noted(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(("folder" if folder else "file", path.read_text()))
        fsync(descriptor)

    monkeypatch.setattr(whole_file.os, "fsync", noted)
    with written_whole(path) as draft:
        draft.write_text("new")
    assert synced == [("file", "old"), ("folder", "new")]


def test_two_writers_at_once_have_drafts_of_their_own(path):
    with written_whole(path) as one:
        one.write_text("one")
        with written_whole(path) as two:
            two.write_text("two")
            assert one != two
        assert path.read_text() == "two"
    assert path.read_text() == "one"
    assert beside(path) == {"file.txt"}


def test_many_writers_leave_one_whole_file(path):
    seen, together = set(), threading.Barrier(4)

    def write(letter):
        together.wait()
        for _ in range(20):
            with written_whole(path, durable=False) as draft:
                draft.write_text(letter * 50_000)
            seen.add(path.read_text())

    writers = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert seen <= {letter * 50_000 for letter in "abcd"}
    assert beside(path) == {"file.txt"}


def test_a_kill_in_between_leaves_the_old_file(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    with written_whole(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"


def test_a_link_is_replaced_and_what_it_leads_to_stays(path):
    link = path.with_name("link")
    link.symlink_to(path)
    with written_whole(link) as draft:
        draft.write_text("new")
    assert path.read_text() == "old"
    assert link.read_text() == "new"
    assert not link.is_symlink()


def test_what_a_cell_writes_does_not_count_as_data_that_it_read(path):
    with watch_opened() as opened, written_whole(path) as draft:
        draft.write_text("new")
    assert not {one for one in opened if Path(one).name.endswith(".tmp")}
