"""Workers do several cells of our own, with the results of processes that did only one."""

import os
import signal
from dataclasses import replace

import pytest

from bench.api.loading import load_plugin
from bench.conformance import RunsOn
from bench.running import worker_pool
from bench.running.job import Job
from bench.running.plan import plan
from bench.running.processes import ProcessExecutor
from bench.running.request import Request
from bench.running.worker import WorkerSettings

SMALL = Request(tasks="after_marker", preset="smoke", speed=False)


def jobs_of(variants, tasks="after_marker", **changed):
    made = plan(replace(SMALL, variants=variants, tasks=tasks))
    return [Job(kind="quality", label=c.variant, cells=(c,), **changed) for c in made.cells]


def do(jobs, settings=None, watch=lambda job, share: None):
    executor = ProcessExecutor(settings or WorkerSettings())
    return {job.label: result for job, result in executor.run(jobs, 1, watch)}


def without_times(result):
    (outcome,) = result.outcomes
    rows = [
        (row.metric, row.axis, None if row.axis == "cpu_s" else row.x, row.split, row.value)
        for row in outcome.rows
        if not row.metric.endswith(("_ms", "_s"))
    ]
    return outcome.status, rows, outcome.artifact, outcome.made, outcome.data


def kill_at_first_progress(new_workers, label):
    """A watcher that kills the worker of one job, once."""
    killed = []

    def watch(job, share):
        if job.label == label and not killed:
            killed.append(new_workers[-1].process.pid)
            os.kill(killed[0], signal.SIGKILL)

    return watch


@pytest.mark.slow
def test_cells_after_others_have_the_rows_of_cells_with_a_process_of_their_own(
    new_workers, monkeypatch
):
    """With draws, pictures that a process reads once, and another order."""
    cells = [
        *jobs_of("additive,hard_gumbel_st"),
        *(replace(job, label=f"digits {job.label}") for job in jobs_of("dot", "digits")),
    ]
    together = do(cells)
    assert len(new_workers) == 1
    backwards = do(cells[::-1])
    assert len(new_workers) == 2
    monkeypatch.setattr(worker_pool, "MOST_JOBS", 1)
    apart = do(cells)
    assert len(new_workers) == 2 + len(cells)
    assert len(apart) == 5
    for label, alone in apart.items():
        assert alone.outcomes[0].status == "ok"
        assert without_times(together[label]) == without_times(alone)
        assert without_times(backwards[label]) == without_times(alone)


def test_a_worker_is_renewed_after_so_many_jobs(new_workers, monkeypatch):
    monkeypatch.setattr(worker_pool, "MOST_JOBS", 2)
    do(jobs_of("dot,general"))
    assert [worker.given for worker in new_workers] == [2, 1]


def test_a_worker_that_was_killed_while_it_waited_harms_no_cell(new_workers):
    first, second, _ = jobs_of("dot,general")
    doing = ProcessExecutor(WorkerSettings()).run([first, second], 1, lambda job, share: None)
    next(doing)
    os.kill(new_workers[0].process.pid, signal.SIGKILL)
    new_workers[0].process.join()
    _, found = next(doing)
    doing.close()
    assert found.outcomes[0].status == "ok"
    assert len(new_workers) == 2


def test_a_cell_that_dies_after_others_is_asked_again_by_itself(new_workers):
    first, second, _ = jobs_of("dot,general")
    found = do([first, second], watch=kill_at_first_progress(new_workers, second.label))
    assert found[second.label].outcomes[0].status == "ok"
    assert [worker.given for worker in new_workers] == [2, 1]


def test_the_first_cell_of_a_worker_that_dies_is_not_asked_again(new_workers):
    first, *_ = jobs_of("dot")
    found = do([first], watch=kill_at_first_progress(new_workers, first.label))
    assert found[first.label].outcomes[0].status == "out_of_memory"
    assert len(new_workers) == 1


@pytest.mark.parametrize(("seconds", "status"), [(0.0, "timeout"), (300.0, "failed")])
def test_a_worker_is_not_used_again_after_trouble(new_workers, seconds, status):
    first, second, _ = jobs_of("dot,general")
    first = replace(first, timeout_s=seconds)
    if status == "failed":
        cell = first.cells[0]
        first = replace(first, cells=(replace(cell, protocol="adam[lr=-1]"),))
    found = do([first, second])
    assert found[first.label].outcomes[0].status == status
    assert found[second.label].outcomes[0].status == "ok"
    assert [worker.given for worker in new_workers] == [1, 1]


def test_a_refused_cell_costs_no_worker(new_workers, tmp_path):
    _, first, *_ = jobs_of("dot", "translation")
    _, second, *_ = jobs_of("general")
    found = do([first, second], WorkerSettings(data_dir=str(tmp_path)))
    assert found[first.label].outcomes[0].status == "refused"
    assert found[second.label].outcomes[0].status == "ok"
    assert len(new_workers) == 1


def test_code_of_others_has_a_process_of_its_own(trouble_plugin, new_workers):
    load_plugin(trouble_plugin)
    settings = WorkerSettings(plugins=(str(trouble_plugin),))
    scaled_dot, raiser, dot = jobs_of("raiser,dot")
    assert not worker_pool.may_share(raiser)
    assert worker_pool.may_share(dot)
    do([dot, raiser], settings)
    assert [worker.given for worker in new_workers] == [1, 1]
    do([dot, scaled_dot], settings)
    assert [worker.given for worker in new_workers] == [1, 1, 2]


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({"kind": "quality"}, True),
        ({"kind": "analysis"}, True),
        ({"kind": "speed"}, False),
        ({"kind": "certificate", "cells": (), "variant": "dot"}, True),
        ({"kind": "certificate", "cells": (), "variant": "dot", "thorough": True}, False),
        ({"kind": "certificate", "cells": (), "variant": "dot", "impl": "compiled"}, False),
        (
            {"kind": "certificate", "cells": (), "variant": "dot", "on": RunsOn("cuda", "float32")},
            False,
        ),
    ],
)
def test_what_may_follow_others_in_a_process(changes, may):
    (job, _) = jobs_of("dot")
    assert worker_pool.may_share(replace(job, **changes)) == may


def test_a_cell_on_a_gpu_has_a_process_of_its_own():
    (job, _) = jobs_of("dot")
    on_gpu = replace(job, cells=(replace(job.cells[0], device="cuda"),))
    assert not worker_pool.may_share(on_gpu)
