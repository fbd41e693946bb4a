"""The inside of a worker process: one thread, one job, one answer.

The fork server imports this module once, so that torch and the registry are already there when a
worker is forked and a fresh process costs milliseconds.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from bench.api.foreign_prints import leave_standard_output
from bench.api.loading import load_package, load_plugin
from bench.running.allocator import keep_freed_memory
from bench.running.job import Job, JobResult
from bench.running.runner import ShareDone, failed_result, reason_of, run_job, trace_of

load_package("variants")
load_package("tasks")

REPORT_EVERY_S = 0.5
"""Pause between two progress messages of one worker."""


@dataclass(frozen=True)
class WorkerSettings:
    """What every job of a run shares."""

    data_dir: str = ""
    plugins: tuple[str, ...] = ()
    threads: int = 1


def work(connection: Connection, job: Job, settings: WorkerSettings) -> None:
    """Do one job and send ("progress", share) now and then, ("done", result) at the end."""
    # Ctrl-C reaches every process of a terminal; the driver ends its workers itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leave_standard_output()
    finished = threading.Event()
    threading.Thread(target=_leave_with, args=(connection, finished), daemon=True).start()
    last = 0.0

    def share_done(share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_EVERY_S:
            last = now
            tell(connection, ("progress", share))

    result = _answer(job, settings, share_done)
    finished.set()
    tell(connection, ("done", result))


def _answer(job: Job, settings: WorkerSettings, share_done: ShareDone) -> JobResult:
    """Do a job, whatever its code raises; only an exit gets through."""
    try:
        prepare_process(settings)
        data_dir = Path(settings.data_dir) if settings.data_dir else None
        return run_job(job, data_dir, share_done)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  an interrupt of the user never comes here
        return failed_result(job, reason_of(error), 0.0, trace_of(error))


def tell(connection: Connection, message: tuple[str, Any]) -> None:
    """Send to the driver; one that is gone, as after an interrupt, needs no traceback."""
    with suppress(OSError):
        connection.send(message)


def prepare_process(settings: WorkerSettings) -> None:
    """Load plug-ins, set threads, and keep freed memory."""
    for path in settings.plugins:
        load_plugin(Path(path))
    torch.set_num_threads(settings.threads)
    keep_freed_memory()


def _leave_with(connection: Connection, finished: threading.Event) -> None:
    """End this process when the driver is gone, so that a killed run leaves nothing behind.

    The driver never sends anything: the only thing to hear is that its end was closed.
    """
    with suppress(OSError):
        connection.poll(None)
    if not finished.is_set():
        os._exit(1)
