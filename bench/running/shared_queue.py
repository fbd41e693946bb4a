"""Jobs on their way to an executor; other processes may take cells of the same run folder."""

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TextIO

from bench.api.cell import Cell
from bench.api.selector import parse
from bench.running.job import Job, JobResult
from bench.running.kept_results import KeptResults
from bench.running.machine_lock import MachineBusy, machine_lock
from bench.running.processes import Executor
from bench.running.progress import Display
from bench.running.quality_cells import PlannedCell
from bench.training.protocol import read_protocol
from results.certificate import verdict

SLACK = 30.0
"""A cell may take this many times its expected seconds before it is ended."""
LEAST_TIMEOUT_S = 120.0
CPU_SLACK = 5.0
"""The same for the CPU seconds that its protocol gives a training, which are no estimate."""
EDITED = (
    "warning: code was edited after this run had begun, so some results ({}) are of other code "
    "than the run; they are computed again next time."
)


class SharedQueue:
    """Gives jobs to an executor, and what they leave to the results, cell by cell.

    Other processes may run into the same folder: a cell is reserved before it runs, and one that
    another process holds is looked at again later.
    """

    def __init__(self, results: KeptResults, executor: Executor, stream: TextIO) -> None:
        """Take what is shared by all jobs of a session.

        Args:
            results: Which cells need not run, and where results go.
            executor: Who does the jobs.
            stream: Where progress is told.
        """
        self._results = results
        self._executor = executor
        self._stream = stream
        self._queue: deque[Job] = deque()

    def run(
        self, jobs: list[Job], at_once: int, *, exclusive: bool, end_s: float = math.inf
    ) -> Iterator[tuple[Job, JobResult]]:
        """Do jobs, and give each with its result once that is stored.

        Args:
            jobs: What to do.
            at_once: How many run at a time.
            exclusive: Whether nothing else may run on this machine, as for timing.
            end_s: When all of them are ended, by `time.monotonic`.
        """
        if not jobs:
            return
        display = Display(jobs, at_once, self._stream)
        self._queue = deque(jobs)
        instead = "--no-speed leaves timing out" if exclusive else ""
        before = self._results.of_other_code
        try:
            with (
                machine_lock(exclusive=exclusive, say=display.say, instead=instead, end_s=end_s),
                closing(
                    self._executor.run(self._in_time(display, end_s), at_once, display.watch)
                ) as done,
            ):
                for job, result in done:
                    if result.died and len(job.cells) > 1:
                        # one of them took the others along; each alone shows which
                        display.finish(job, "died; one by one")
                        display.expect(self._split(job))
                        continue
                    self._results.keep(job, result)
                    display.finish(job, _said(result))
                    yield job, result
                if edited := self._results.of_other_code - before:
                    display.say(EDITED.format(edited))
        except MachineBusy as error:
            display.say(str(error))
        finally:
            display.close()

    def _split(self, job: Job) -> list[Job]:
        """Queue every cell of a block as a job of its own, which takes longer than its share."""
        alone = [_part(replace(job, seconds=2 * job.seconds), [cell]) for cell in job.cells]
        self._queue.extend(alone)
        return alone

    def _in_time(self, display: Display, end_s: float) -> Iterator[Job | None]:
        """Take jobs with the time that is left when they start; what has none is given back.

        Waiting for the lock of the machine, or for another job, may have taken some of it.
        """
        for job in self._take(display):
            left = end_s - time.monotonic()
            if job is None:
                if left <= 0:
                    return  # what another process still holds
                yield None
            elif left > 0:
                yield replace(job, timeout_s=min(job.timeout_s, left))
            else:
                self._results.give_back(job.cells)
                display.finish(job, "no time left")

    def _take(self, display: Display) -> Iterator[Job | None]:
        """Reserve jobs one by one; what another process holds is looked at again later."""
        while self._queue:
            waiting = len(self._queue)
            for _ in range(waiting):
                job = self._queue.popleft()
                if not job.cells:
                    yield job
                    continue
                mine, held = self._reserve(job.cells)
                if not mine and not held:
                    display.finish(job, "done elsewhere")
                    continue
                parts = [_part(job, cells) for cells in (mine, held) if cells]
                display.expect(parts, instead_of=job)
                if held:
                    self._queue.append(parts[-1])
                if mine:
                    yield parts[0]
            if self._queue:
                yield None

    def _reserve(self, cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
        """Cells that are ours to run, and cells that another process holds now."""
        free = [cell for cell in cells if self._results.reserve(cell)]
        held = [cell for cell in cells if cell not in free]
        return [cell for cell in free if not self._results.done_elsewhere(cell)], held


def longest_silence_s(planned: PlannedCell) -> float:
    """How long a training may take without any progress, however wrong its estimate is (s)."""
    given = read_protocol(planned.cell.protocol).cpu_seconds
    return max(LEAST_TIMEOUT_S, SLACK * planned.seconds, CPU_SLACK * given)


def speed_job(
    cells: tuple[Cell, ...], reference: Cell, expected: float, least_s: float = LEAST_TIMEOUT_S
) -> Job:
    """A job that times cells in one block, beside the reference.

    Args:
        cells: What is timed.
        reference: What it is timed beside.
        expected: How long that takes (s).
        least_s: The least time that it is given (s); none where a machine is lent for minutes.
    """
    what = f"{len(cells)} variants" if len(cells) > 1 else parse(cells[0].variant).name
    return Job(
        kind="speed",
        label=f"speed {reference.task} ({what})",
        cells=cells,
        reference=reference,
        seconds=expected,
        timeout_s=max(least_s, SLACK * expected),
    )


def _part(job: Job, cells: Sequence[Cell]) -> Job:
    """A job of some cells of a job, with their share of its time."""
    if len(cells) == len(job.cells):
        return job
    assert job.reference is not None, "only speed blocks have several cells"
    share, least_s = len(cells) / len(job.cells), min(LEAST_TIMEOUT_S, job.timeout_s)
    return speed_job(tuple(cells), job.reference, share * job.seconds, least_s)


def _said(result: JobResult) -> str:
    if result.certificate is not None:
        return verdict(result.certificate)
    statuses = [outcome.status for outcome in result.outcomes]
    others = [status for status in statuses if status != "ok"]
    if not others:
        return "ok"
    return f"ok but {others[0]}" if "ok" in statuses else others[0]
