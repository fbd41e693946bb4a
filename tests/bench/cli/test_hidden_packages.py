"""Files in the current folder that hide a package of the bench."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def script(tmp_path):
    """The console script, as an installer writes it from pyproject.toml."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["bench"]
    module, _, function = declared.partition(":")
    path = tmp_path / "bin" / "bench"
    path.parent.mkdir()
    path.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    return path


def called(command, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", ["tasks", "results", "reports", "variants"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_hides_a_package_is_named_in_one_sentence(tmp_path, name, kind):
    if kind == "file":
        hiding = tmp_path / f"{name}.py"
    else:
        (tmp_path / name).mkdir()
        hiding = tmp_path / name / "__init__.py"
    hiding.write_text("x = 1\n")
    said = called(["-m", "bench", "list", "presets"], tmp_path)
    assert said.returncode == 1
    assert said.stdout == ""
    (line,) = said.stderr.splitlines()
    assert str(hiding if kind == "file" else hiding.parent) in line
    assert repr(name) in line


def test_the_console_script_does_not_look_into_the_current_folder(tmp_path):
    command = script(tmp_path)
    for name in ("bench", "tasks", "results", "reports", "variants"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported the wrong file')\n")
    said = called([str(command), "list", "presets"], tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "quick" in said.stdout


def test_a_folder_without_code_hides_nothing(tmp_path):
    (tmp_path / "results").mkdir()
    said = called(["-m", "bench", "list", "presets"], tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
