"""Two writers of one run folder are killed fifty times; nothing finished is lost or repeated."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from results.store import Store

WRITER = Path(__file__).with_name("ledger_writer.py")
ENDLESS = 10**9
PAUSE_S = 0.01


@pytest.fixture
def start():
    """Start writers, and leave none behind when a test fails."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(folder: Path, last: int, pause_s: float = 0.0) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(WRITER), str(folder), str(last), str(pause_s)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        started.append(writer)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        return writer

    yield start_one
    for writer in started:
        writer.kill()
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()


def kill(writer: subprocess.Popen[bytes]) -> list[str]:
    """Kill without warning; returns the lines that the writer had acknowledged."""
    os.kill(writer.pid, signal.SIGKILL)
    assert writer.stdout is not None
    said = writer.stdout.read().decode()
    assert writer.wait() == -signal.SIGKILL
    return said.split("\n")[:-1]


@pytest.mark.parametrize("kills", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_of_two_writers_lose_tear_and_repeat_nothing(tmp_path, start, kills):
    draw = random.Random(20261120)
    folder = tmp_path / "run"
    store = Store.create(folder)
    writers = [start(folder, ENDLESS, PAUSE_S), start(folder, ENDLESS, PAUSE_S)]
    acknowledged: list[str] = []
    busy_kills = 0
    for turn in range(kills):
        time.sleep(draw.uniform(0.0, 0.03))
        said = kill(writers[turn % 2])
        busy_kills += bool(said)
        acknowledged += said
        finished = store.finished()
        assert {line.split()[1] for line in acknowledged} <= finished.keys()
        writers[turn % 2] = start(folder, ENDLESS, PAUSE_S)
    for writer in writers:
        acknowledged += kill(writer)
    assert busy_kills > 0.8 * kills, "the writers were killed before they wrote anything"

    last = 1 + max(int(line.split()[0]) for line in acknowledged) + 20
    writer = start(folder, last)
    assert writer.stdout is not None
    acknowledged += writer.stdout.read().decode().split("\n")[:-1]
    assert writer.wait() == 0

    ledger = Store(folder).ledger()
    times_finished = Counter(record.id for record in ledger.records)
    assert set(times_finished.values()) == {1}, "a finished cell was run again"
    assert {record.cell["seed"] for record in ledger.records} == set(range(last))
    assert not ledger.corrupt_lines
    assert max(Counter(acknowledged).values()) == 1
    assert len(list((folder / "ledger").glob("*.jsonl"))) >= 3


def test_a_kill_in_the_middle_of_a_line_leaves_a_tail_that_is_counted_and_written_again(
    tmp_path, start
):
    folder = tmp_path / "run"
    store = Store.create(folder)
    writer = start(folder, 10)
    assert writer.wait() == 0
    [path] = (folder / "ledger").glob("*.jsonl")
    whole = path.read_bytes()
    last_line = whole.rstrip(b"\n").rpartition(b"\n")[2]
    path.write_bytes(whole[: -len(last_line) // 2])
    assert len(store.finished()) == 9
    assert store.ledger().torn_tails == 1

    again = start(folder, 10)
    assert again.stdout is not None
    assert len(again.stdout.read().splitlines()) == 1
    assert again.wait() == 0
    records = Store(folder).records()
    assert {record.cell["seed"] for record in records} == set(range(10))
    assert all(json.dumps(record.to_json(), allow_nan=False) for record in records)
