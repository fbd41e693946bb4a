"""A session whose executor answers what a test tells it, without any work."""

import io

import pytest

from bench.running.job import JobResult, Outcome
from bench.running.plan import plan
from bench.running.request import Request
from bench.running.session import Session
from bench.running.worker import WorkerSettings
from bench.running.worker_pool import WorkerPool
from results.row import Row
from results.store import Store

SMALL = Request(variants="additive,dot,general", tasks="after_marker", preset="smoke")


class Told:
    """An executor that answers what a test tells it, without any work."""

    def __init__(self, answer=None):
        self.answer = answer or (lambda job: "ok")
        self.done = []

    def run(self, jobs, jobs_at_once, watch):
        for job in jobs:
            if job is None:
                continue
            self.done.append(job)
            yield job, self.result(job)

    def result(self, job):
        answer = self.answer(job)
        if isinstance(answer, JobResult):
            return answer
        rows = (Row(metric="token_accuracy", value=0.5),) if answer == "ok" else ()
        detail = "" if answer == "ok" else "for a reason."
        return JobResult(
            tuple(Outcome(c, answer, detail, rows, {"samples": []}, 1.0) for c in job.cells)
        )


@pytest.fixture
def start(tmp_path):
    """`start(answer, **options)` -> a session into one folder, with its executor."""
    opened = []

    def open_session(answer=None, folder="run", **options):
        store = Store.create(tmp_path / folder)
        told = Told(answer)
        session = Session(store, WorkerSettings(), stream=io.StringIO(), executor=told, **options)
        opened.append(store)
        return session

    yield open_session
    for store in opened:
        store.close()


@pytest.fixture
def made():
    return plan(SMALL)


@pytest.fixture
def new_workers(monkeypatch):
    """Every worker that is started from now on."""
    started, start = [], WorkerPool._new

    def seen(self, job):
        started.append(start(self, job))
        return started[-1]

    monkeypatch.setattr(WorkerPool, "_new", seen)
    return started
