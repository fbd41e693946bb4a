"""Worker processes as the driver sees them: started, given jobs, used again, ended."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess

from bench.api.foreign import names_foreign_code, runs_foreign_code
from bench.running.job import Job, JobResult
from bench.running.worker import WorkerSettings, work

MOST_JOBS = 24
"""A worker is renewed after so many, so that what libraries keep does not pile up."""
USABLE = ("ok", "refused")
"""A worker is used again only after cells that ended in one of these."""


@dataclass
class Worker:
    """A process that waits for jobs, or does one."""

    process: BaseProcess
    connection: Connection
    given: int = 0
    """Jobs that it has been given."""

    @property
    def used(self) -> bool:
        """Whether it has done another job before the one that it was given last."""
        return self.given > 1

    def end(self) -> None:
        """End it, at once if it is at work."""
        self.connection.close()
        self.process.join(0.2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class WorkerPool:
    """Workers of one run: those of our own code do several jobs, all others one."""

    def __init__(self, context: ForkServerContext, settings: WorkerSettings) -> None:
        self.context = context
        self.settings = settings
        self._idle: list[Worker] = []
        self._alive: list[Worker] = []

    def give(self, job: Job, *, fresh: bool = False) -> Worker:
        """Give a job to a worker that waits, or to a new one.

        Args:
            job: What to do.
            fresh: Whether it must be the first job of its worker.
        """
        worker = self._idle.pop() if self._idle and may_share(job) and not fresh else None
        # an interrupt between two messages to the newborn would leave it with half of its job, and
        # its traceback on the screen of the user
        with _postponed({signal.SIGINT, signal.SIGTERM}):
            worker = worker or self._new(job)
            worker.given += 1
            with suppress(OSError):  # it died while it waited, which whoever listens will find
                worker.connection.send(job)
        return worker

    def take_back(self, worker: Worker, job: Job, result: JobResult) -> None:
        """Keep a worker for another job, or end it."""
        if may_share(job) and worker.given < MOST_JOBS and leaves_no_trace(result):
            self._idle.append(worker)
        else:
            self.end(worker)

    def end(self, worker: Worker) -> None:
        """End a worker, at once if it is at work."""
        self._alive.remove(worker)
        worker.end()

    def end_all(self) -> None:
        """End every worker."""
        self._idle.clear()
        for worker in list(self._alive):
            self.end(worker)

    def _new(self, job: Job) -> Worker:
        ours, theirs = self.context.Pipe()
        # where no plug-in was loaded, none can have changed anything
        settings = self.settings if needs_plugins(job) else replace(self.settings, plugins=())
        process = self.context.Process(target=work, args=(theirs, settings), daemon=True)
        _start_deaf_forkserver()
        process.start()
        theirs.close()
        worker = Worker(process, ours)
        self._alive.append(worker)
        return worker


def may_share(job: Job) -> bool:
    """Whether a job may follow others in one process.

    Not with code of others (ADR 18), on a GPU, whose memory belongs to the process, with compiled
    code, or where times are measured, which must not depend on what the process did before.
    """
    devices = {cell.device for cell in job.cells} | ({job.on.device} if job.on else set())
    compiled = job.impl == "compiled"
    alone = job.kind == "speed" or job.thorough or compiled or needs_plugins(job)
    return not alone and devices <= {"cpu"}


def leaves_no_trace(result: JobResult) -> bool:
    """Whether a job ended as it should, so that its process is as good as new."""
    held = result.certificate
    good = all(outcome.status in USABLE for outcome in result.outcomes)
    return good and not result.died and not result.trace and not (held and held["failed"])


def needs_plugins(job: Job) -> bool:
    """Whether a job runs code of a plug-in, as far as this process has loaded any."""
    cells = [*job.cells, *([job.reference] if job.reference else [])]
    certified = [job.variant] if job.variant else []
    return any(map(runs_foreign_code, cells)) or names_foreign_code(*certified)


def _start_deaf_forkserver() -> None:
    """Start the process that forks workers, if there is none, so that no worker hears an interrupt.

    A worker that is interrupted before its first line, where it would ignore the signal, ends with
    a traceback on the user's screen. Signals that are blocked stay so in all descendants.
    """
    # started first, because starting it lets interrupts through again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _postponed(signals: set[signal.Signals]) -> Generator[None]:
    """Handle signals to this process only at the end of the block.

    Blocking them in this thread would not do: another thread may receive them, and Python runs
    handlers in the main thread all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    before = {one: signal.signal(one, lambda number, _: caught.append(number)) for one in signals}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for number in caught:
            signal.raise_signal(number)
