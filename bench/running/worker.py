"""The inside of a worker process: one thread, one job after the other, an answer to each.

The fork server imports this module once, so that torch and the registry are already there when a
worker is forked. A fresh process still pays half a second for the memory that it stops sharing.
"""

import gc
import os
import signal
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from bench.api.foreign_prints import leave_standard_output
from bench.api.loading import load_package, load_plugin
from bench.running.allocator import (
    keep_freed_memory,
    refuse_more_memory_than_there_is,
    return_freed_memory,
)
from bench.running.code_of_cells import CodeOfCells
from bench.running.job import Job, JobResult
from bench.running.runner import ShareDone, failed_result, reason_of, run_job, trace_of
from bench.running.source_code import loaded_source, plugins_digest

load_package("variants")
load_package("tasks")
loaded_source()  # as it is now that it is imported, whatever becomes of the files

REPORT_EVERY_S = 0.5
"""Pause between two progress messages of one worker."""
NOT_LOADED = "not loaded"
"""Stands for the hash of plug-ins of which none could be loaded."""


@dataclass(frozen=True)
class WorkerSettings:
    """What every job of a run shares."""

    data_dir: str = ""
    plugins: tuple[str, ...] = ()
    threads: int = 1
    files: Mapping[str, str] = field(default_factory=dict)
    """Hash of every module as the driver had imported it."""


def work(connection: Connection, settings: WorkerSettings) -> None:
    """Do every job that comes, until the driver closes the connection.

    Sends ("progress", share) now and then and ("done", result) at the end of each job.
    """
    # Ctrl-C reaches every process of a terminal; the driver ends its workers itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leave_standard_output()
    jobs: SimpleQueue[Job | None] = SimpleQueue()
    busy = threading.Event()
    threading.Thread(target=_hear, args=(connection, jobs, busy), daemon=True).start()
    # what was imported before is no garbage, and need not be looked at after every job
    gc.freeze()
    prepared = False
    while (job := jobs.get()) is not None:
        result = _answer(job, settings, _reporter(connection), prepared=prepared)
        prepared = True
        busy.clear()
        tell(connection, ("done", result))
        del job, result
        # the next job finds the memory that a fresh process would find
        gc.collect()
        return_freed_memory()


def _reporter(connection: Connection) -> ShareDone:
    """Tells the driver the share done, not too often."""
    last = 0.0

    def share_done(share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_EVERY_S:
            last = now
            tell(connection, ("progress", share))

    return share_done


def _answer(
    job: Job, settings: WorkerSettings, share_done: ShareDone, *, prepared: bool
) -> JobResult:
    """Do a job, whatever its code raises; only an exit gets through."""
    try:
        if not prepared:
            prepare_process(settings)
        data_dir = Path(settings.data_dir) if settings.data_dir else None
        return _with_code(run_job(job, data_dir, share_done), job, settings.files)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  an interrupt of the user never comes here
        failed = failed_result(job, reason_of(error), 0.0, trace_of(error))
        # one that does not load is not the one that the run has loaded
        lacking = NOT_LOADED if settings.plugins else ""
        return replace(failed, plugins=plugins_digest() or lacking)


def _with_code(result: JobResult, job: Job, files: Mapping[str, str]) -> JobResult:
    """Add the hashes of the code that ran, where the files of the driver may be other code."""
    if not loaded_source().differs(files):
        return result
    code = CodeOfCells()
    found = {one.cell.id: code.digest(one.cell, one.made) for one in result.outcomes}
    if job.variant:
        found[job.variant] = code.of_certificate(job.variant)
    return replace(result, code=found)


def tell(connection: Connection, message: tuple[str, Any]) -> None:
    """Send to the driver; one that is gone, as after an interrupt, needs no traceback."""
    with suppress(OSError):
        connection.send(message)


def prepare_process(settings: WorkerSettings) -> None:
    """Load plug-ins, set threads, and say what becomes of memory."""
    # the thread that computes gradients says so at its first product on a GPU
    warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA")
    for path in settings.plugins:
        load_plugin(Path(path))
    loaded_source()  # the modules beside them, too
    torch.set_num_threads(settings.threads)
    keep_freed_memory()
    if not torch.cuda.is_available():  # drivers of a GPU map more than they use
        refuse_more_memory_than_there_is()


def _hear(connection: Connection, jobs: "SimpleQueue[Job | None]", busy: threading.Event) -> None:
    """Take jobs, and end with the driver: a killed run leaves nothing behind.

    A worker that is waiting ends as every process does; one at work has nobody to answer.
    """
    with suppress(EOFError, OSError):
        while True:
            job = connection.recv()
            busy.set()
            jobs.put(job)
    if busy.is_set():
        os._exit(1)
    jobs.put(None)
