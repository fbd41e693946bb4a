"""Signals at any moment of a run: nothing finished is lost, nothing runs twice, no traceback."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from results.ledger import LedgerReader
from tests.fuzz.law import Attack, Broken, Case

ROOT = Path(__file__).parents[2]
ASKED = ["run", "--variants", "dot,general", "--tasks", "after_marker", "--preset", "smoke"]
ASKED += ["--training", "adam[steps=2]", "--no-speed", "--no-verify", "--jobs", "2"]
CELLS = 3


def interrupted_runs(chance: random.Random, folder: Path) -> Iterator[tuple[str, Case]]:
    """Runs that get a few signals, and then the same run to its end."""
    while True:
        kinds = [signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
        sent = [
            (chance.choice(kinds), chance.uniform(0, 0.3)) for _ in range(chance.choice((1, 3)))
        ]
        after = chance.uniform(0.2, 9)
        yield (
            f"{[one.name for one, _ in sent]} after {after:.1f} s",
            lambda sent=sent, after=after: _interrupt(folder / "run", sent, after),
        )


def _interrupt(out: Path, sent: list[tuple[signal.Signals, float]], after: float) -> None:
    shutil.rmtree(out, ignore_errors=True)
    process = _started(out)
    time.sleep(after)
    for one, pause in sent:
        if process.poll() is None:
            os.killpg(process.pid, one)
            time.sleep(pause)
    _, said = process.communicate(timeout=120)
    before = _attempts(out)
    if "Traceback" in said:
        raise Broken(said[-2000:])
    killed = {-one for one, _ in sent}
    if process.returncode not in {0, 130, *killed}:
        raise Broken(f"exit code {process.returncode}: {said[-500:]}")
    again = _started(out)
    _, said = again.communicate(timeout=200)
    found = _attempts(out)
    if again.returncode != 0 or len(found) != CELLS or set(found.values()) != {1}:
        raise Broken(f"then {again.returncode}, {found}: {said[-500:]}")
    if not before.keys() <= found.keys():
        raise Broken("a finished cell was lost")


def _started(out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *ASKED, "--out", str(out)],
        cwd=out.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a suite that a shell started in the background ignores interrupts, and so would this
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one thread
    )


def _attempts(out: Path) -> Counter[str]:
    return Counter(record.id for record in LedgerReader(out / "ledger").read().records)


ATTACKS = (Attack("signals", interrupted_runs, few=0, many=2),)
