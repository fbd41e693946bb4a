"""A function in a process of its own, so that a broken device context ends with it."""

import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import torch

from bench.running.worker import WorkerSettings, prepare_process
from bench.timing.reason import Reason, attempt

T = TypeVar("T")


def isolated(
    function: Callable[..., T],
    *arguments: object,
    settings: WorkerSettings,
    timeout_s: float,
    **named: object,
) -> T | Reason:
    """Call a function of a module in a fresh process.

    Args:
        function: Importable by its name.
        arguments: What it is called with.
        settings: Threads and plug-ins of the process.
        timeout_s: Wall time after which the process is ended (s).
        named: What it is called with by name.

    Returns:
        What it returns, or why it returned nothing.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    call = partial(function, *arguments, **named)
    process = context.Process(target=_call, args=(theirs, call, settings), daemon=False)
    begin = time.monotonic()
    process.start()
    theirs.close()
    try:
        if not ours.poll(timeout_s):
            return Reason("timeout", f"took longer than {timeout_s:.0f} s.")
        return ours.recv()
    except (EOFError, OSError):
        process.join(5)
        taken = time.monotonic() - begin
        return Reason("failed", f"the process ended with {process.exitcode} after {taken:.0f} s.")
    finally:
        ours.close()
        if process.is_alive():
            process.join(1)
            process.kill()
        process.join()


def _call(connection: Connection, call: Callable[[], Any], settings: WorkerSettings) -> None:
    prepare_process(settings)
    torch.manual_seed(0)
    connection.send(attempt(call))
