"""Runs that are killed, interrupted or doubled: nothing finished is lost and nothing runs twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.bench.cli.command_lines import with_others

ROOT = Path(__file__).parents[3]
ASKED = [
    *("run", "--variants", "additive,dot,general", "--tasks", "after_marker"),
    *("--preset", "smoke", "--seeds", "2", "--jobs", "2", "--no-speed", "--no-verify"),
]
CELLS = 8

pytestmark = pytest.mark.slow


@pytest.fixture
def drive(tmp_path):
    """Start a run in a process group of its own."""
    started = []

    def begin(*more):
        words = with_others([*ASKED, "--out", str(tmp_path / "run")], *more)
        command = [sys.executable, "-m", "bench", *words]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # a suite that a shell started in the background ignores interrupts, and so would this
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one thread
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_run_leaves_no_process_and_is_finished_by_the_next(tmp_path, drive, cells_of):
    folder, kills = tmp_path / "run", 0
    for target in (2, 5):
        driver = drive()
        wait_for(lambda n=target, d=driver: len(cells_of(folder)) >= n or d.poll() is not None)
        family = (
            psutil.Process(driver.pid).children(recursive=True) if driver.poll() is None else []
        )
        kills += driver.poll() is None
        os.kill(driver.pid, signal.SIGKILL)
        driver.communicate()
        wait_for(lambda family=family: not any(map(alive, family)), 20)
        done = cells_of(folder)
        assert set(map(len, done.values())) <= {1}
    assert kills >= 1
    before = set(cells_of(folder))
    last = drive()
    said, _ = last.communicate(timeout=200)
    assert last.returncode == 0
    after = cells_of(folder)
    assert len(after) == CELLS
    assert set(map(len, after.values())) == {1}, "a finished cell was run again"
    were = "was" if len(before) == 1 else "were"
    assert f"{CELLS - len(before)} ok, {len(before)} {were} finished before" in said


def test_a_run_that_adds_seeds_and_is_killed_goes_on_at_the_same_look(tmp_path, drive, cells_of):
    words = ["--preset", "demo", "--training", "adam[steps=1]", "--variants", "additive"]
    words += ["--until", "decided", "--most-seeds", "7"]
    folder, whole = tmp_path / "run", tmp_path / "whole"
    driver = drive(*words)
    # the first look has two seeds of two variants, so this is in the middle of the second
    wait_for(lambda: len(cells_of(folder)) >= 5 or driver.poll() is not None)
    killed = driver.poll() is None
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    last = drive(*words)
    _, said = last.communicate(timeout=200)
    assert killed, "it was too fast for this test"
    assert last.returncode == 0
    assert "look 2 of 3: " in said
    again = drive(*words, "--out", str(whole))
    again.communicate(timeout=200)
    assert cells_of(folder).keys() == cells_of(whole).keys()
    assert set(map(len, cells_of(folder).values())) == {1}, "a finished cell was run again"


def test_an_interrupt_stops_at_once_and_says_what_is_saved_and_how_to_go_on(
    tmp_path, drive, cells_of
):
    folder = tmp_path / "run"
    driver = drive()
    wait_for(lambda: len(cells_of(folder)) >= 2)
    family = psutil.Process(driver.pid).children(recursive=True)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    saved = len(cells_of(folder))
    assert f"stopped. {saved} finished cells are saved in {folder}" in said
    assert f"go on with: python -m bench {' '.join(ASKED)} --out {folder}" in said
    assert "Traceback" not in said
    wait_for(lambda: not any(map(alive, family)), 20)
    again = drive()
    again.communicate(timeout=200)
    assert again.returncode == 0
    assert {tuple(map(len, cells_of(folder).values()))} == {(1,) * CELLS}


def test_two_runs_into_one_folder_share_the_cells(tmp_path, drive, cells_of):
    drivers = [drive(), drive()]
    said = [driver.communicate(timeout=300) for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0], said
    found = cells_of(tmp_path / "run")
    assert len(found) == CELLS
    assert set(map(len, found.values())) == {1}, "a cell ran twice"
    assert len(list((tmp_path / "run" / "ledger").glob("*.jsonl"))) == 2, "one did everything"
    for text, _ in said:
        assert "report: " in text


def test_workers_are_born_deaf_to_interrupts(tmp_path):
    """One that arrives before a worker's first line would print a traceback."""
    script = """
import multiprocessing, signal
from bench.running.worker_pool import _start_deaf_forkserver

def blocked(end):
    end.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    _start_deaf_forkserver()
    context.Process(target=blocked, args=(theirs,)).start()
    print(ours.recv(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    file = tmp_path / "deaf.py"
    file.write_text(script, encoding="utf-8")
    said = subprocess.run(
        [sys.executable, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["True", "False"]
