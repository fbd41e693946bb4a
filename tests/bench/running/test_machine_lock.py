"""The lock of the machine: where there can be none, a run goes on and says so."""

import fcntl
import os
import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.running import machine_lock as locks
from bench.running.machine_lock import LOCK, LOCK_VARIABLE, MachineBusy, lock_file, machine_lock


@pytest.mark.parametrize(("exclusive", "sentences"), [(True, 1), (False, 0)])
def test_without_a_place_for_the_lock_timing_says_that_it_may_not_be_alone(
    monkeypatch, exclusive, sentences
):
    monkeypatch.setenv(LOCK_VARIABLE, "/proc/nothing/machine.lock")
    said, done = [], False
    with machine_lock(exclusive=exclusive, say=said.append):
        done = True
    assert done
    assert len(said) == sentences
    assert all("timing may not be alone" in one for one in said)


def waits(monkeypatch, exclusive):
    """What somebody says who has to wait for the lock."""
    said, flock = [], locks.fcntl.flock

    def busy(file, kind):
        if kind & fcntl.LOCK_NB:
            raise BlockingIOError

    with monkeypatch.context() as patched:
        patched.setattr(locks.fcntl, "flock", busy)
        instead = "--no-speed leaves timing out" if exclusive else ""
        with machine_lock(exclusive=exclusive, say=said.append, instead=instead):
            pass
    assert locks.fcntl.flock is flock
    return said


def test_who_waits_says_for_whom_and_how_to_go_on_without_timing(monkeypatch, tmp_path):
    lock = tmp_path / "machine.lock"
    monkeypatch.setenv(LOCK_VARIABLE, str(lock))
    lock.write_text("+ 999999999 2026-01-01 00:00:00\nnot a line of ours\n")  # it was killed
    with machine_lock(exclusive=False, say=print):
        (sentence,) = waits(monkeypatch, exclusive=False)
        assert "--no-speed" not in sentence  # training waits, too, where another run is timed
        begun = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
        assert re.search(rf"machine \(PID {os.getpid()} since {begun}; {lock}\)", sentence)
    (sentence,) = waits(monkeypatch, exclusive=True)
    assert "PID" not in sentence  # the first has let go
    assert sentence.endswith("so that timing stays alone; --no-speed leaves timing out ...")


@pytest.mark.parametrize("exclusive", [True, False])
def test_who_has_no_more_time_stops_waiting_and_says_who_held_the_machine(
    monkeypatch, tmp_path, exclusive
):
    lock = tmp_path / "machine.lock"
    monkeypatch.setenv(LOCK_VARIABLE, str(lock))
    said, end_s = [], time.monotonic() + 0.05
    waiting = machine_lock(exclusive=exclusive, say=said.append, end_s=end_s)
    with (
        machine_lock(exclusive=True, say=print),
        pytest.raises(MachineBusy, match=rf"until the time was over \(PID {os.getpid()} since "),
        waiting,
    ):
        pytest.fail("begun without the lock")
    assert time.monotonic() >= end_s
    assert len(said) == 1
    with machine_lock(exclusive=exclusive, say=said.append, end_s=end_s):
        assert len(said) == 1, "a free machine needs no time"


def test_who_has_time_gets_the_machine_when_it_is_free(monkeypatch, tmp_path):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    with ExitStack() as held:
        held.enter_context(machine_lock(exclusive=True, say=print))
        monkeypatch.setattr(locks.time, "sleep", lambda _: held.close())
        end_s = time.monotonic() + 600
        with machine_lock(exclusive=True, say=print, end_s=end_s):
            assert time.monotonic() < end_s


def test_who_waits_names_a_process_of_another_user(monkeypatch, tmp_path):
    lock = tmp_path / "machine.lock"
    monkeypatch.setenv(LOCK_VARIABLE, str(lock))
    lock.write_text("+ 4242 2026-01-01 00:00:00\n")

    def forbidden(process, signal):
        raise PermissionError

    monkeypatch.setattr(locks.os, "kill", forbidden)
    (sentence,) = waits(monkeypatch, exclusive=True)
    assert "PID 4242 since 2026-01-01" in sentence


def test_a_lock_file_does_not_grow_while_runs_are_timed(monkeypatch, tmp_path):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    for _ in range(3):
        with machine_lock(exclusive=True, say=print):
            pass
    (lock,) = tmp_path.iterdir()
    assert lock.read_text() == f"- {os.getpid()}\n"


def test_every_run_of_a_machine_takes_one_lock_wherever_its_temporary_files_are(
    monkeypatch, tmp_path
):
    monkeypatch.delenv(LOCK_VARIABLE)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert lock_file() == LOCK == Path("/tmp/attention-bench.lock")


def test_every_user_may_take_the_lock_whatever_the_first_one_lets_others_do(monkeypatch, tmp_path):
    lock = tmp_path / "machine.lock"
    monkeypatch.setenv(LOCK_VARIABLE, str(lock))
    before = os.umask(0o077)
    try:
        with machine_lock(exclusive=True, say=print):
            pass
    finally:
        os.umask(before)
    assert lock.stat().st_mode & 0o777 == 0o666


def test_a_link_in_the_place_of_the_lock_is_not_followed(monkeypatch, tmp_path):
    precious, said = tmp_path / "precious.txt", []
    precious.write_text("keep me")
    (tmp_path / "machine.lock").symlink_to(precious)
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    with machine_lock(exclusive=True, say=said.append):
        pass
    assert precious.read_text() == "keep me"
    assert "timing may not be alone" in said[0]
