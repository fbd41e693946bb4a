"""Workers with one thread each, so that a crash, a hang or a leak is a row and nothing more."""

import multiprocessing
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Protocol

from bench.api.plain_text import message_of
from bench.api.process_state import signal_name
from bench.running.job import Job, JobResult
from bench.running.runner import failed_result
from bench.running.source_code import loaded_source
from bench.running.worker import WorkerSettings
from bench.running.worker_pool import Worker, WorkerPool
from bench.timing.reason import Reason

PRELOADED = [
    "bench.running.before_imports",
    "bench.running.worker",
    "torch._dynamo",
    "sklearn.metrics",
]
"""Imported once, by the server that forks workers: the first optimizer imports torch._dynamo and
scores import scikit-learn, more than a second of CPU time each. The first one reads all files."""
POLL_S = 0.5
"""Longest time between two checks of the workers (s)."""
ASLEEP_S = 10.0
"""Between two checks a job is charged no more than this (s): the machine may have been asleep."""
END = object()
"""No job is left to take."""


class Executor(Protocol):
    """Something that does jobs."""

    def run(
        self, jobs: Iterable[Job | None], jobs_at_once: int, watch: Callable[[Job, float], None]
    ) -> Generator[tuple[Job, JobResult]]:
        """Do jobs, yield each with its result as it ends; `watch` hears the share done.

        A job is taken only when it can start at once. None says that nothing can be taken now,
        and that asking again will tell more.
        """


@dataclass
class Running:
    """A worker at work."""

    job: Job
    worker: Worker
    started: float
    looked: float
    """When the driver last listened."""
    awake: float = 0.0
    """Time that counts against the limit (s)."""
    share: float = 0.0
    """Largest share done that it has told."""
    result: JobResult | None = None


class ProcessExecutor:
    """Gives jobs to workers, which are forked from a server that has imported torch once."""

    def __init__(self, settings: WorkerSettings) -> None:
        # torch reads these when it is imported, which the fork server does for all workers
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        self.settings = replace(settings, files=loaded_source().files)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(PRELOADED)

    def run(
        self, jobs: Iterable[Job | None], jobs_at_once: int, watch: Callable[[Job, float], None]
    ) -> Generator[tuple[Job, JobResult]]:
        """Do jobs, a few at once; on an interrupt every process is ended before it goes on."""
        coming = iter(jobs)
        running: list[Running] = []
        pool = WorkerPool(self.context, self.settings)
        more = True
        try:
            while more or running:
                if more:
                    more = _fill(pool, coming, running, jobs_at_once)
                wait([one.worker.connection for one in running], timeout=POLL_S)
                for one in list(running):
                    _listen(one, watch)
                    if one.result is None:
                        continue
                    running.remove(one)
                    if one.worker.used and _may_be_of_earlier_jobs(one.result):
                        pool.end(one.worker)
                        running.append(_start(pool, one.job, fresh=True))
                        continue
                    pool.take_back(one.worker, one.job, one.result)
                    yield one.job, one.result
        finally:
            pool.end_all()


def _fill(
    pool: WorkerPool, coming: Iterator[Job | None], running: list[Running], at_once: int
) -> bool:
    """Start jobs while there is room; False once there are no more."""
    while len(running) < at_once:
        job = next(coming, END)
        if job is END:
            return False
        if not isinstance(job, Job):
            return True
        running.append(_start(pool, job))
    return True


def _start(pool: WorkerPool, job: Job, *, fresh: bool = False) -> Running:
    worker = pool.give(job, fresh=fresh)
    now = time.monotonic()
    return Running(job, worker, now, now)


def _listen(one: Running, watch: Callable[[Job, float], None]) -> None:
    """Read what a worker sent; set a result if it ended, died or took too long."""
    now = time.monotonic()
    taken = now - one.started
    one.awake += min(now - one.looked, ASLEEP_S)
    one.looked = now
    share = _read(one, taken)
    if share is not None:
        if one.job.patient and share > one.share:
            one.share, one.awake = share, 0.0
        watch(one.job, share)  # what that raises says nothing about the worker
    if one.result is None and one.awake > one.job.timeout_s:
        one.result = replace(failed_result(one.job, _too_long(one.job), taken), died=True)


def _read(one: Running, taken: float) -> float | None:
    """Take what a worker sent, or what its death means; the last share done that it told."""
    share = None
    try:
        while one.result is None and one.worker.connection.poll():
            kind, content = one.worker.connection.recv()
            if kind == "done":
                one.result = content
            else:
                share = float(content)
    except (EOFError, OSError):  # an OSError where it died in the middle of a message
        one.worker.process.join(5)
        reason = _death(one.worker.process.exitcode)
        one.result = replace(failed_result(one.job, reason, taken), died=True)
    except Exception as error:  # noqa: BLE001  whatever somebody else wrote into the pipe
        reason = Reason("failed", f"its answer cannot be read: {message_of(error)}")
        one.result = replace(failed_result(one.job, reason, taken), died=True)
    return share


def _too_long(job: Job) -> Reason:
    """Why a job was ended at its limit; a cell can be asked again, a certificate always is."""
    what = "made no progress for" if job.patient else "took longer than"
    again = "; --retry timeout runs it again" if job.cells else ""
    return Reason("timeout", f"{what} {job.timeout_s:.0f} s{again}.")


def _may_be_of_earlier_jobs(result: JobResult) -> bool:
    """Whether a fresh process might do better: what failed here shall have failed by itself.

    Training that diverged or took too long is the cell's own doing.
    """
    if result.certificate is not None:
        return bool(result.certificate["failed"])
    return any(one.status in ("failed", "out_of_memory") for one in result.outcomes)


def _death(exitcode: int | None) -> Reason:
    """Why a worker ended without an answer."""
    if exitcode is not None and exitcode < 0:
        name = signal_name(-exitcode)
        if name == "SIGKILL":
            return Reason(
                "out_of_memory", "the process was killed (SIGKILL), most likely for memory."
            )
        return Reason("failed", f"the process died of {name}.")
    return Reason("failed", f"the process ended with exit code {exitcode} and no result.")
