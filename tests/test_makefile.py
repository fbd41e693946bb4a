"""What `make` removes: nothing published before what takes its place is written."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("target", ["publish", "publish-tasks", "publish-claims"])
def test_a_report_that_fails_leaves_the_published_pack_and_pages(tmp_path, target):
    shutil.copy(ROOT / "Makefile", tmp_path)
    bin_ = tmp_path / "venv" / "bin"
    published = [
        tmp_path / "results" / "published" / "claims.parquet",
        tmp_path / "reports" / "published" / "claims" / "report.md",
    ]
    run, ready = tmp_path / "runs" / "claims" / "ledger" / "one.jsonl", bin_.parent / ".ready"
    for path in (*published, run, bin_ / "python"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\nexit 1\n")
    (bin_ / "python").chmod(0o755)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    ready.touch()
    os.utime(ready, (2**31, 2**31))  # later than what it is made of
    done = subprocess.run(
        ["make", target, "RUN=claims", "TASKS=recall", "VENV=venv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "bench" in done.stdout
    assert all(path.is_file() for path in published)
