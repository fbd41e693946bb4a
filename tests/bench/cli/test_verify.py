"""Certificates and rehearsals on the command line."""

import fcntl
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from bench.running.machine_lock import lock_file
from bench.running.processes import ProcessExecutor
from bench.running.runner import run_job
from results.environment import collect
from results.store import Store

ROOT = Path(__file__).parents[3]


def test_a_certificate_is_printed_and_is_json_alone(call):
    code, out, err = call("verify", "uniform", "--json", "--jobs", 1)
    assert (code, err) == (0, "")
    (found,) = json.loads(out).values()
    assert found["green"]
    assert {"passed", "skipped", "failed", "expected"} <= set(found)
    code, out, _ = call("verify", "uniform", "--jobs", 1)
    assert code == 0
    counted = next(line for line in out.splitlines() if line.startswith("uniform"))
    assert ["uniform", "green", str(len(found["passed"]))] == counted.split()[:3]
    assert all(f"\n{check}: " in f"\n{out}" for check in found["passed"])
    for check, why in found["skipped"].items():
        assert f"{check} skipped: {why}" in out


def test_single_checks_are_run_and_a_misspelled_one_is_refused_before_any(call):
    asked = ["--check", "splits", "--check", "shapes", "--json", "--jobs", 1]
    code, out, err = call("verify", "uniform", *asked)
    assert (code, err) == (0, "")
    (found,) = json.loads(out).values()
    assert found["passed"] == found["expected"] == ["shapes", "splits"]
    code, out, err = call("verify", "uniform", "--check", "split")
    assert (code, out) == (2, "")
    assert "no check named 'split'; did you mean 'splits'?" in err
    code, _, err = call("verify", "uniform", "--check", "splits", "--dtype", "bfloat16")
    assert code == 2
    assert "leave these out, or leave out --check" in err


def test_certificates_share_the_machine_so_that_timing_elsewhere_waits(call, monkeypatch):
    waits = []

    def run(executor, jobs, jobs_at_once, watch):
        for job in jobs:
            with lock_file().open("a") as other, pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waits.append(job.variant)
            yield job, run_job(job, None, lambda share: None)

    monkeypatch.setattr(ProcessExecutor, "run", run)
    code, _, _ = call("verify", "uniform", "--check", "shapes", "--jobs", 1)
    assert (code, waits) == (0, ["uniform"])


def test_a_device_that_is_not_there_is_refused_before_anything_is_verified(call, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, out, err = call("verify", "uniform", "--device", "cuda")
    assert (code, out) == (2, "")
    assert err == ("this machine has no CUDA device; choose --device cpu.\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "this machine has no CUDA device; add --rehearse to do all of it on the processor."),
        (["--rehearse", "--minutes", "0"], "minutes must be above 0, got 0.0."),
        (["--rehearse", "--variants", "bahdanaw"], "did you mean 'bahdanau'"),
    ],
)
def test_what_cannot_be_measured_on_a_gpu_is_refused_in_one_sentence(
    call, monkeypatch, tmp_path, words, sentence
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    code, out, err = call("gpu", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("what", ["cpu", "torch"])
def test_measurements_of_another_device_or_torch_are_not_gone_on_with(call, tmp_path, what):
    facts = asdict(collect(1))
    here = facts["cpu"], facts["packages"]["torch"]
    other = (what == "cpu" and "Abacus") or here[0], (what == "torch" and "1.0") or here[1]
    with Store.create(tmp_path / "run") as store:
        packages = {**facts["packages"], "torch": other[1]}
        store.write_json("environments/0.json", {**facts, "cpu": other[0], "packages": packages})
    code, out, err = call("gpu", "--rehearse", "--out", tmp_path / "run", "--variants", "dot")
    assert (code, out) == (2, "")
    assert f"has measurements of {other[0]} with torch {other[1]}, and this is {here[0]}" in err
    assert err.endswith("give another --out.\n")


@pytest.mark.slow
def test_a_rehearsal_does_every_piece_and_goes_on_where_it_stopped(tmp_path):
    command = [sys.executable, "-m", "bench", "gpu", "--rehearse", "--variants", "scaled_dot"]
    command += ["--out", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCH_CACHE_DIR": str(tmp_path)}

    def run(minutes):
        words = [*command, "--minutes", str(minutes)]
        return subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    first = run(0.05)
    assert first.returncode == 0, first.stderr
    assert "The same command goes on with the rest." in first.stdout
    whole = run(9)
    assert whole.returncode == 0, whole.stderr
    done = re.search(r"(\d+) of (\d+) pieces are done", whole.stdout)
    assert done[1] == done[2]
    text = (tmp_path / "run" / "gpu.md").read_text(encoding="utf-8")
    assert text.rstrip().endswith("Nothing yet.")  # under what is missing
    compiled = [line for line in text.splitlines() if "| compiled |" in line]
    assert len(compiled) == 2  # torch.compile ran, in a process without the hook of the tests
    assert "failed" not in text
    rows = Store(tmp_path / "run").records()
    assert {row.status for row in rows} == {"ok"}
    assert {row.cell["kind"] for row in rows} == {"speed", "quality"}
    layers = {(c["dtype"], c["impl"]) for c in (r.cell for r in rows) if "place=slot" in c["task"]}
    assert layers == {("bfloat16", "auto"), ("float32", "eager")}
    (entry,) = json.loads((tmp_path / "run" / "certificates.json").read_text()).values()
    shapes = {
        check.partition("_at_")[0] for check in entry["passed"] if check.startswith("timed_shape_")
    }
    assert shapes == {"timed_shape_on_cpu_bfloat16", "timed_shape_on_cpu_float32_eager"}


@pytest.mark.slow
def test_a_certificate_in_another_format_and_at_a_shape_has_checks_of_its_own(call):
    asked = ["--dtype", "bfloat16", "--shape", "L=40", "--jobs", 1, "--json"]
    code, out, _ = call("verify", "uniform", *asked)
    assert code == 0
    (found,) = json.loads(out).values()
    at = "timed_shape_on_cpu_bfloat16_at_cross_B2_H2_L40_E32"
    assert {"answers_on_cpu_bfloat16", at} <= set(found["passed"])
    assert {"oracle", "causality"} <= set(found["passed"])


def test_code_that_a_variant_lacks_is_one_line_and_no_failure_beside_what_has_it(call):
    asked = ["--impl", "sdpa", "--check", "shapes", "--jobs", 1]
    code, out, _ = call("verify", "additive", "dot", *asked)
    assert code == 0
    assert "red" not in re.findall(r"^additive +(\w+)", out, re.MULTILINE)
    assert out.count("impl=sdpa needs a dot-product score") == 1
    assert "leave --impl out" in out
    code, out, _ = call("verify", "additive", *asked, "--json")
    assert code == 1, "nothing was proved"
    (found,) = json.loads(out).values()
    assert found["refused"].startswith("impl=sdpa needs")
    assert (found["green"], found["failed"]) == (False, {})


def test_code_that_is_timed_alone_can_be_certified(call):
    code, _, err = call("verify", "dto", "--impl", "compiled")
    assert code == 2
    assert "did you mean 'dot'" in err
