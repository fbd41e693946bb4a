"""Plug-ins that are wrong in every way: each is a row with a sentence, and the others go on."""

from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch

from bench.api.loading import load_plugin
from bench.api.process_state import ProcessState
from bench.running import runner
from bench.running.inline import InlineExecutor
from bench.running.job import Job
from bench.running.plan import plan
from bench.running.processes import ProcessExecutor
from bench.running.request import Request
from bench.running.worker import WorkerSettings
from bench.timing.block import group_blocks

WRONG = '''"""Scores that change what code shares, or leave what no file can hold."""

import os
import signal
import sys

import numpy as np
import torch
import torch.nn.functional as F

from bench.api.score import Score
from bench.api.registry import DefaultTask, register
from variants.scores.scaled_dot import ScaledDotScore


def add(name, trouble):
    class Wrong(ScaledDotScore):
        def energy(self, call, features):
            trouble()
            return super().energy(call, features)

        def dot_form(self, call):
            trouble()
            return super().dot_form(call)

    Wrong.__qualname__ = name
    register("score", name, default_task=DefaultTask(task="after_marker"), title=name)(Wrong)


def fail(text):
    raise RuntimeError(text)


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


def mute():
    raise Mute


def fail_silently():
    raise AssertionError


@register("score", "misspelled", default_task=DefaultTask(task="after_marker"), title="misspelled")
class Misspelled(Score):
    def enrgy(self, call, features):
        return call.query @ call.memory.source.key.mT

    def oracle(self, one, features):
        return one.keys @ one.query


def patch():
    plain = F.softmax.__get__(F) if hasattr(F.softmax, "__self__") else F.softmax
    F.softmax = lambda *inputs, **named: plain(*inputs, **named)


add("threads", lambda: torch.set_num_threads(2))
add("dtype", lambda: torch.set_default_dtype(torch.float64))
add("patch", patch)
add("numpy_draws", lambda: np.random.rand())
add("variables", lambda: os.environ.update(OMP_NUM_THREADS="7"))
add("folder", lambda: os.chdir("/"))
add("handler", lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN))
add("surrogate", lambda: fail("half a pair: \\ud800"))
add("long", lambda: fail("x" * 5_000_000))
add("mute", mute)
add("asserter", lambda: fail_silently())
add("printer", lambda: (print("spoken"), os.write(1, b"written"), None)[-1])
add("realtime", lambda: os.kill(os.getpid(), signal.SIGRTMIN + 6))
add("exit", lambda: sys.exit(0))
add("interrupt", lambda: signal.default_int_handler(2, None))
add("compiler", lambda: sys.setrecursionlimit(max(sys.getrecursionlimit(), 2000)))
'''

SMALL = Request(tasks="after_marker", preset="smoke")
LAST = "; a variant or task leaves that as it was."


@pytest.fixture
def wrong(tmp_path, fresh_registry):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    load_plugin(path)
    return path


def cells_of(variants, kind="quality"):
    made = plan(Request(**{**SMALL.__dict__, "variants": variants}))
    return {c.variant.partition("[")[0]: c for c in made.cells if c.kind == kind}


def done(executor, jobs):
    return {job.label: result for job, result in executor.run(jobs, 2, lambda job, share: None)}


def train(kind, wrong, names):
    cells = cells_of(",".join(names))
    jobs = [Job(kind="quality", label=name, cells=(cells[name],)) for name in names]
    found = done(kind(WorkerSettings(plugins=(str(wrong),))), jobs)
    return {name: found[name].outcomes[0] for name in names}


CHANGES = {
    "threads": "torch's number of threads from 1 to 2",
    "dtype": "the default dtype from torch.float32 to torch.float64",
    "patch": "the code of torch.nn.functional.softmax",
    "numpy_draws": "NumPy's shared random numbers",
    "variables": "environment variables (OMP_NUM_THREADS)",
    "folder": "the current folder",
    "handler": "handlers of signals (SIGALRM)",
}


def test_a_variant_that_changes_the_process_is_told_and_leaves_no_trace(wrong, monkeypatch):
    monkeypatch.chdir(Path.cwd())
    softmax = torch.nn.functional.softmax
    found = train(InlineExecutor, wrong, [*CHANGES, "scaled_dot"])
    said = {name: (one.status, one.detail) for name, one in found.items()}
    assert said.pop("scaled_dot") == ("ok", "")
    assert said == {name: ("failed", f"it changed {what}{LAST}") for name, what in CHANGES.items()}
    assert not any(found[name].rows for name in CHANGES)
    assert torch.get_num_threads() == 1
    assert torch.get_default_dtype() == torch.float32
    assert torch.nn.functional.softmax is softmax


def test_what_no_file_can_hold_is_made_fit_for_one(wrong):
    names = ["surrogate", "long", "mute", "exit", "asserter", "misspelled"]
    found = train(InlineExecutor, wrong, names)
    assert {one.status for one in found.values()} == {"failed"}
    assert found["surrogate"].detail.startswith("RuntimeError: half a pair: \ufffd (wrong.py:")
    assert " ... (5000000 characters) (wrong.py:" in found["long"].detail
    assert len(found["long"].detail) < 1100
    assert found["mute"].detail.startswith("Mute (wrong.py:")
    assert found["asserter"].detail.startswith("AssertionError (wrong.py:")
    missing = "Misspelled has no method `energy`, only `enrgy`; write it (see bench/api/score.py)"
    assert found["misspelled"].detail == missing
    assert found["exit"].detail == "it asked to end the process with exit code 0."


@pytest.mark.slow
def test_a_process_of_its_own_ends_in_a_row_and_prints_nothing(wrong, capfd):
    names = ["threads", "realtime", "interrupt", "exit", "printer"]
    # a server that another test has started writes where that test was heard
    forkserver._forkserver._stop()
    found = train(ProcessExecutor, wrong, names)
    said = {name: (one.status, one.detail) for name, one in found.items()}
    out, err = capfd.readouterr()
    assert said["printer"] == ("ok", "")
    assert said["threads"] == ("failed", f"it changed {CHANGES['threads']}{LAST}")
    assert said["realtime"] == ("failed", "the process died of signal 40.")
    assert said["interrupt"][0] == "failed"
    assert said["interrupt"][1].startswith("KeyboardInterrupt (wrong.py:")
    assert said["exit"] == ("failed", "the process ended with exit code 0 and no result.")
    assert out == ""
    assert "spoken" in err
    assert "written" in err
    assert "Traceback" not in err


def test_what_the_compiler_does_to_the_limit_of_recursion_is_no_change(wrong):
    found = train(InlineExecutor, wrong, ["compiler"])
    assert (found["compiler"].status, found["compiler"].detail) == ("ok", "")


def test_a_speed_cell_of_a_plug_in_has_a_block_of_its_own(wrong):
    cells = [*cells_of("threads,patch,additive,dot", "speed").values()]
    blocks = sorted(sorted(cell.variant for cell in block) for block in group_blocks(cells))
    assert blocks == [["additive", "dot", "scaled_dot"], ["patch"], ["threads"]]


def test_a_timed_plug_in_that_changes_the_process_has_no_times(wrong):
    cells = cells_of("threads", "speed")
    job = Job(kind="speed", label="", cells=(cells["threads"],), reference=cells["scaled_dot"])
    (outcome,) = done(InlineExecutor(WorkerSettings()), [job])[""].outcomes
    assert outcome.status == "failed"
    assert outcome.detail == (f"it or its baseline scaled_dot changed {CHANGES['threads']}{LAST}")
    assert outcome.rows == ()


def test_a_cell_without_values_says_of_no_metric_why_it_is_missing(monkeypatch):
    cells = cells_of("linear_attention", "speed")
    job = Job(
        kind="speed",
        label="",
        cells=(cells["linear_attention"],),
        reference=cells["scaled_dot"],
    )
    (whole,) = done(InlineExecutor(WorkerSettings()), [job])[""].outcomes
    assert any(one.metric.startswith("forward_weights") for one in whole.unmeasured)
    monkeypatch.setattr(ProcessState, "undo", lambda self: ("the current folder",))
    (outcome,) = done(InlineExecutor(WorkerSettings()), [job])[""].outcomes
    assert (outcome.status, outcome.rows, outcome.unmeasured) == ("failed", (), ())


def test_a_block_in_which_somebody_changed_the_process_is_asked_one_by_one(wrong):
    cells = cells_of("threads,dot", "speed")
    together = (cells["dot"], cells["threads"])
    job = Job(kind="speed", label="", cells=together, reference=cells["scaled_dot"])
    assert done(InlineExecutor(WorkerSettings()), [job])[""].died


def test_a_block_after_which_the_gpu_is_lost_is_asked_one_by_one(monkeypatch):
    """Whoever was timed behind the one that lost it has failed without fault."""
    cells = cells_of("dot,additive", "speed")
    together = (cells["dot"], cells["additive"])
    job = Job(kind="speed", label="", cells=together, reference=cells["scaled_dot"])
    alone = replace(job, cells=together[:1])
    monkeypatch.setattr(runner, "lost_gpu", lambda: True)
    monkeypatch.setattr(runner, "measure_block", lambda *_, **__: 1 / 0)
    assert done(InlineExecutor(WorkerSettings()), [job])[""].died
    found = done(InlineExecutor(WorkerSettings()), [alone])[""]
    assert not found.died, "its own record says what it did"
    assert found.outcomes[0].status == "failed"


def test_cells_of_the_project_run_where_no_plug_in_was_loaded(wrong):
    cells = cells_of("dot,threads")
    needs = {}
    executor = ProcessExecutor(WorkerSettings(plugins=("nowhere.py",)))
    for name in ("dot", "threads"):
        found = done(executor, [Job(kind="quality", label=name, cells=(cells[name],))])
        needs[name] = found[name].outcomes[0]
    assert needs["dot"].status == "ok"
    assert needs["threads"].detail.startswith("no plug-in file nowhere.py")


@pytest.mark.parametrize("kind", ["quality", "certificate"])
def test_our_own_variants_leave_the_process_as_it_was(kind):
    cell = cells_of("additive")["additive"]
    job = Job(kind="certificate", label="", variant="additive")
    if kind == "quality":
        job = Job(kind="quality", label="", cells=(cell,))
    result = done(InlineExecutor(WorkerSettings()), [job])[""]
    if kind == "quality":
        assert result.outcomes[0].status == "ok"
    else:
        assert not result.certificate["failed"]
