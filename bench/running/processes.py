"""A fresh one-thread process a job, so that a crash, a hang or a leak is a row and nothing more."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol

from bench.api.foreign import names_foreign_code, runs_foreign_code
from bench.api.plain_text import message_of
from bench.api.process_state import signal_name
from bench.running.job import Job, JobResult
from bench.running.runner import failed_result
from bench.running.worker import WorkerSettings, work
from bench.timing.reason import Reason

PRELOADED = ["bench.running.worker", "torch._dynamo", "sklearn.metrics"]
"""Imported once, by the server that forks workers: the first optimizer imports torch._dynamo and
scores import scikit-learn, more than a second of CPU time each."""
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
    """A process at work."""

    job: Job
    process: BaseProcess
    connection: Connection
    started: float
    looked: float
    """When the driver last listened."""
    awake: float = 0.0
    """Time that counts against the limit (s)."""
    result: JobResult | None = None


class ProcessExecutor:
    """Forks each job from a server process that has imported torch once."""

    def __init__(self, settings: WorkerSettings) -> None:
        # torch reads these when it is imported, which the fork server does for all workers
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        self.settings = settings
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(PRELOADED)

    def run(
        self, jobs: Iterable[Job | None], jobs_at_once: int, watch: Callable[[Job, float], None]
    ) -> Generator[tuple[Job, JobResult]]:
        """Do jobs, a few at once; on an interrupt every process is ended before it goes on."""
        coming = iter(jobs)
        running: list[Running] = []
        more = True
        try:
            while more or running:
                if more:
                    more = self._fill(coming, running, jobs_at_once)
                wait([one.connection for one in running], timeout=POLL_S)
                for one in list(running):
                    self._listen(one, watch)
                    if one.result is not None:
                        running.remove(one)
                        self._end(one)
                        yield one.job, one.result
        finally:
            for one in running:
                self._end(one)

    def _fill(self, coming: Iterator[Job | None], running: list[Running], at_once: int) -> bool:
        """Start jobs while there is room; False once there are no more."""
        while len(running) < at_once:
            job = next(coming, END)
            if job is END:
                return False
            if not isinstance(job, Job):
                return True
            running.append(self._start(job))
        return True

    def _start(self, job: Job) -> Running:
        ours, theirs = self.context.Pipe()
        # where no plug-in was loaded, none can have changed anything
        settings = self.settings if needs_plugins(job) else replace(self.settings, plugins=())
        process = self.context.Process(target=work, args=(theirs, job, settings), daemon=True)
        _start_deaf_forkserver()
        # an interrupt between two messages to the newborn would leave it with half of its job, and
        # its traceback on the screen of the user
        with _postponed({signal.SIGINT, signal.SIGTERM}):
            process.start()
        theirs.close()
        now = time.monotonic()
        return Running(job, process, ours, now, now)

    def _listen(self, one: Running, watch: Callable[[Job, float], None]) -> None:
        """Read what a worker sent; set a result if it ended, died or took too long."""
        now = time.monotonic()
        taken = now - one.started
        one.awake += min(now - one.looked, ASLEEP_S)
        one.looked = now
        try:
            while one.result is None and one.connection.poll():
                kind, content = one.connection.recv()
                if kind == "done":
                    one.result = content
                else:
                    watch(one.job, content)
        except (EOFError, OSError):  # an OSError where it died in the middle of a message
            one.process.join(5)
            reason = _death(one.process.exitcode)
            one.result = replace(failed_result(one.job, reason, taken), died=True)
        except Exception as error:  # noqa: BLE001  whatever somebody else wrote into the pipe
            reason = Reason("failed", f"its answer cannot be read: {message_of(error)}")
            one.result = replace(failed_result(one.job, reason, taken), died=True)
        if one.result is None and one.awake > one.job.timeout_s:
            reason = Reason("timeout", f"took longer than {one.job.timeout_s:.0f} s.")
            one.result = replace(failed_result(one.job, reason, taken), died=True)

    @staticmethod
    def _end(one: Running) -> None:
        one.connection.close()
        one.process.join(0.2)
        if one.process.is_alive():
            one.process.kill()
            one.process.join()


def needs_plugins(job: Job) -> bool:
    """Whether a job runs code of a plug-in, as far as this process has loaded any."""
    cells = [*job.cells, *([job.reference] if job.reference else [])]
    certified = [job.variant] if job.variant else []
    return any(map(runs_foreign_code, cells)) or names_foreign_code(*certified)


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
