"""How the program ends when the disk, the terminal or the user stops it: one sentence."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from bench.api.errors import BenchError
from bench.cli.sentences import LONGEST_SENTENCE, ended_with_a_sentence, system_sentence

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _handlers():
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


def raising(error):
    def program():
        raise error

    return program


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SystemExit(0), 0, ""),
        (SystemExit(None), 0, ""),
        (SystemExit(3), 3, ""),
        (SystemExit("no."), 1, "no."),
        (KeyboardInterrupt(), 130, "interrupted."),
        (click.exceptions.Abort(), 130, "interrupted."),
        (click.UsageError("wrong"), 2, "wrong"),
        (BenchError("what; do that."), 2, "what; do that."),
        (BenchError("half \ud800"), 2, "half \ufffd"),
        (BenchError(), 2, "BenchError"),
        (MemoryError(), 2, "this needs more memory than there is; ask for less at once"),
        (RecursionError(), 2, "this is nested too deeply"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 2, ""),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/x"),
            2,
            "cannot read or write runs/x (No space left on device); free some space",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "a"), 2, "change its permissions"),
    ],
)
def test_every_end_is_an_exit_code_and_a_sentence(error, code, said, capsys):
    assert ended_with_a_sentence(raising(error)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == (said != "")


def test_what_nobody_foresaw_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        ended_with_a_sentence(raising(ZeroDivisionError()))


def test_a_sentence_that_quotes_megabytes_is_cut(capsys):
    ended_with_a_sentence(raising(BenchError("x" * 3_000_000)))
    assert len(capsys.readouterr().err) < LONGEST_SENTENCE + 100


def test_an_error_of_the_system_without_a_place_is_a_sentence():
    assert system_sentence(OSError("odd")) == (
        "cannot read or write (odd); mend that, or name another place."
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_a_sentence_and_a_failure():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bench", "list", "presets"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "cannot read or write (No space left on device); free some space, or write elsewhere.\n"
    )


@pytest.mark.parametrize("asked", [["list", "presets"], ["rum"]])
def test_a_command_whose_streams_are_closed_ends_with_its_exit_code(asked, tmp_path):
    told = tmp_path / "told"
    closed = f"{sys.executable} -m bench {' '.join(asked)} >&- 2>&-; echo $? > {told}"
    subprocess.run(closed, shell=True, cwd=ROOT, check=False)
    assert told.read_text() == ("2\n" if asked == ["rum"] else "0\n")


def test_a_stream_that_was_closed_leads_nowhere(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert ended_with_a_sentence(lambda: print("unheard", file=sys.stdout)) == 0
    assert ended_with_a_sentence(raising(BenchError("unheard."))) == 2
    assert {sys.stdout.name, sys.stderr.name}.isdisjoint((1, 2))  # those numbers are taken here
    sys.stdout.close()
    sys.stderr.close()


@pytest.mark.slow
def test_a_second_interrupt_while_the_first_is_handled_changes_nothing(tmp_path):
    command = [sys.executable, "-m", "bench", "run", "--variants", "additive,dot,general"]
    command += ["--tasks", "after_marker", "--preset", "smoke", "--no-speed", "--no-verify"]
    process = subprocess.Popen(
        [*command, "--seeds", "9", "--out", str(tmp_path / "run")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one thread
    )
    ledger = tmp_path / "run" / "ledger"
    end = time.monotonic() + 120
    while time.monotonic() < end and not list(ledger.glob("*.jsonl")):
        time.sleep(0.05)
    for _ in range(4):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert " saved in " in err
