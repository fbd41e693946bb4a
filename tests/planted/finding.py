"""What notices a defect: the certificate of a variant, or the unit tests of the file."""

import contextlib
import gc
import io
import os
import pickle
import resource
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.conformance import certify
from tests.planted.defect import Defect
from tests.planted.planting import ROOT, planted

LIMIT_S = 120
"""Longest CPU time in a process of its own; whatever hangs has been noticed."""
WAITED = 10
"""Times the same that a process may take by the clock, for others run beside it."""


class TookTooLong(Exception):
    """Neither noticed nor not: a process was waiting, or the machine was too busy."""


@dataclass(frozen=True)
class Found:
    """What noticed a defect."""

    red: dict[str, str]
    """Check or unit tests -> the sentence; empty where nothing noticed."""
    unanswered: str = ""
    """Why it is not known."""

    @property
    def by(self) -> str:
        """Names of what noticed it."""
        return ", ".join(self.red)


def by_certificate(variant: str, checks: Iterable[str] | None) -> Found:
    """Certify as the code is now; a check that must pass and is skipped is red."""
    certificate = certify(variant, checks=checks)
    return Found(certificate.failed | certificate.missing())


def by_tests(*tests: str | Path) -> Found:
    """Run unit tests as the code is now, up to the first that fails; in a process of its own."""
    return isolated(lambda: Found(_failing(tests)), otherwise="the unit tests")


def _failing(tests: Iterable[str | Path]) -> dict[str, str]:
    names: dict[str, str] = {}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # this process ends; none of them is used

    class Failures:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                names[report.nodeid] = _last_line(report.longreprtext)

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                names[report.nodeid] = _last_line(report.longreprtext)

    paths = [str(ROOT / test) for test in tests]
    words = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not cuda"]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules are here already
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        tempfile.TemporaryDirectory() as folder,  # not the one that other runs of tests tidy up
    ):
        words += ["--rootdir", str(ROOT), "--basetemp", f"{folder}/tests"]
        pytest.main([*words, *paths], plugins=[Failures()])
    return names


def _last_line(text: str) -> str:
    errors = [line[2:].strip() for line in text.splitlines() if line.startswith("E ")]
    return errors[0] if errors else next(iter(text.strip().splitlines()[-1:]), "")


def notice(defect: Defect, *, all_checks: bool = False) -> Found:
    """Plant a defect and ask what it is expected to turn red.

    Args:
        defect: What to plant.
        all_checks: Run the whole certificate instead of the one check.
    """
    with planted(defect.file, defect.changed):
        if defect.test:
            return by_tests(defect.test)
        return by_certificate(defect.variant, None if all_checks else [defect.check])


def isolated(work: Callable[[], Found], *, otherwise: str, limit_s: int = LIMIT_S) -> Found:
    """Run in a copy of this process, which may hang or die without harm.

    Args:
        work: What to run.
        otherwise: What noticed the defect where the copy hangs or dies.
        limit_s: Longest CPU time (seconds).

    Raises:
        TookTooLong: It neither ended nor used its CPU time up.
    """
    reading, writing = os.pipe()
    gc.freeze()  # or else the copy walks through all that it shares, and copies it
    child = os.fork()
    if not child:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))  # counted from the fork
        _answer(work, writing)
    os.close(writing)
    deadline, answer, late = time.monotonic() + WAITED * limit_s, b"", True
    while time.monotonic() < deadline:
        ready, _, _ = select.select([reading], [], [], 1.0)
        more = os.read(reading, 65536) if ready else None
        if more == b"":
            late = False
            break
        answer += more or b""
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    os.waitpid(child, 0)
    if late:
        raise TookTooLong(
            f"no answer after {WAITED * limit_s} s: it waits, or the machine is busy."
        )
    if not answer:
        return Found({otherwise: "the process hung or died"})
    found: Any = pickle.loads(answer)
    if isinstance(found, BaseException):
        raise found
    return found


def _answer(work: Callable[[], Found], writing: int) -> None:
    """Write the answer and end this process without the cleaning up of its parent."""
    try:
        found: Found | BaseException = work()
    except BaseException as error:  # noqa: BLE001  the parent raises it
        found = RuntimeError(f"{type(error).__name__}: {error}")
    with os.fdopen(writing, "wb") as pipe:
        pickle.dump(found, pipe)
    os._exit(0)
