"""Every block of the tutorial is executed, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
