"""Every block of the tutorial is executed, in order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli.demo import MECHANISMS
from bench.cli.main import cli
from results.row import Row
from tests.bench.cli.pretended import pretend

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(?P<language>\w+)(?P<about>[^\n]*)\n(?P<code>.*?)```", flags=re.DOTALL)


def blocks():
    return [match.groupdict() for match in BLOCK.finditer(TEXT)]


def programs():
    """The blocks, with Python that follows Python as one program."""
    found = []
    for block in blocks():
        plain = (block["language"], block["about"].strip()) == ("python", "")
        if (
            plain
            and found
            and (found[-1]["language"], found[-1]["about"].strip()) == ("python", "")
        ):
            found[-1] = {**found[-1], "code": found[-1]["code"] + block["code"]}
        else:
            found.append(block)
    return found


@pytest.mark.slow
def test_every_block_of_the_tutorial_runs(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    environment |= {"BENCH_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    for block in programs():
        name, code = block["about"].strip(), block["code"]
        if name.startswith("file="):
            (tmp_path / name.removeprefix("file=")).write_text(code, encoding="utf-8")
            continue
        if name == "skip" or block["language"] == "text":  # what a command prints
            continue
        command = [sys.executable, "-c", code]
        if block["language"] == "sh":
            command = ["bash", "-ec", code.replace("python -m", f"{sys.executable} -m")]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "runs" / "own" / "report.html").is_file()


def test_the_tutorial_has_commands_python_and_a_file_and_skips_one_block_alone():
    kinds = [(block["language"], block["about"].strip()) for block in blocks()]
    assert {language for language, _ in kinds} == {"sh", "python", "text"}
    assert [about for _, about in kinds if about] == ["file=city_block.py", "skip"]


PRINTED = {"additive": (0.0126, 6.69, 16_300), "scaled_dot": (0.0, 6.21, 12_100)}
PRINTED["uniform"] = (0.0, 6.05, 12_100)
"""Score, time of a step (ms) and parameters in the table of the tutorial."""


def test_the_tutorial_shows_the_table_of_the_demo():
    shown, _ = (block["code"] for block in blocks() if block["language"] == "text")
    heads, _, *rows = shown.splitlines()
    assert "Correct prefix beyond training" in heads
    assert "training step (CPU ms)" in heads
    assert {row.split()[0] for row in rows} == {*MECHANISMS.split(",")}


def test_the_table_that_the_tutorial_shows_is_what_a_run_prints(tmp_path, monkeypatch, capsys):
    """Of these numbers; what a training gives is another question."""

    def scored(cell):
        score, step_ms, parameters = PRINTED[cell.variant]
        more = {"train_step_time_ms": step_ms, "parameters_count": float(parameters)}
        return (score, *(Row(metric=name, value=value) for name, value in more.items()))

    _, shown = (block["code"] for block in blocks() if block["language"] == "text")
    (asked,) = (block["code"] for block in blocks() if "--out runs/tutorial" in block["code"])
    pretend(monkeypatch, tmp_path / "cache", scored)
    words = shlex.split(asked)[3:]
    words[words.index("runs/tutorial")] = str(tmp_path / "run")
    with pytest.raises(SystemExit, match="0"):
        cli(words, standalone_mode=False)
    assert capsys.readouterr().out.startswith(shown)
