"""Jobs on their way to an executor: cells are shared with other processes, and results are kept."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TextIO

from bench.api.cell import Cell
from bench.api.selector import parse
from bench.running.code_of_cells import CodeOfCells
from bench.running.finished import Finished
from bench.running.job import Job, JobResult, Outcome
from bench.running.machine_lock import machine_lock
from bench.running.processes import Executor
from bench.running.progress import Display
from bench.running.tally import Tally
from results.row import Record
from results.store import Store

LOG = "log.txt"
"""File of a run folder with the traceback of every unexpected error."""
SLACK = 30.0
"""A cell may take this many times its expected seconds before it is ended."""
LEAST_TIMEOUT_S = 120.0


class SharedQueue:
    """Gives jobs to an executor and stores what they leave, cell by cell.

    Other processes may run into the same folder: a cell is reserved before it runs, and one that
    another process holds is looked at again later.
    """

    def __init__(
        self,
        store: Store,
        executor: Executor,
        finished: Finished,
        code: CodeOfCells,
        tally: Tally,
        stream: TextIO,
        environment: str,
    ) -> None:
        """Take what is shared by all jobs of a session.

        Args:
            store: Where results go.
            executor: Who does the jobs.
            finished: Which cells need not run.
            code: The code of today, which records name.
            tally: Counts how cells end.
            stream: Where progress is told.
            environment: Id of this machine's facts.
        """
        self.store = store
        self.executor = executor
        self._finished = finished
        self._code = code
        self._tally = tally
        self._stream = stream
        self._environment = environment
        self._queue: deque[Job] = deque()

    def todo(self, cells: Iterable[Cell]) -> set[str]:
        """Ids of the cells to run; counts those that have finished."""
        newest = self.store.ledger().newest()
        asked = {cell.id for cell in cells}
        todo = {id_ for id_ in asked if self._finished.wants(newest.get(id_))}
        for id_ in asked - todo:
            self._found(newest[id_])
        return todo

    def _found(self, record: Record) -> None:
        """Count a finished cell, and write down whether its code and data are those of today."""
        today = self._finished.restated(record)
        if today is not record:
            self.store.append(today)
        self._tally.found(today)

    def run(
        self, jobs: list[Job], at_once: int, *, exclusive: bool
    ) -> Iterator[tuple[Job, JobResult]]:
        """Do jobs, and give each with its result once that is stored.

        Args:
            jobs: What to do.
            at_once: How many run at a time.
            exclusive: Whether nothing else may run on this machine, as for timing.
        """
        if not jobs:
            return
        display = Display(jobs, at_once, self._stream)
        self._queue = deque(jobs)
        try:
            with (
                machine_lock(exclusive=exclusive, say=display.say),
                closing(self.executor.run(self._take(display), at_once, display.watch)) as done,
            ):
                for job, result in done:
                    if result.died and len(job.cells) > 1:
                        # one of them took the others along; each alone shows which
                        display.finish(job, "died; one by one")
                        display.expect(self._split(job))
                        continue
                    self._keep(job, result)
                    display.finish(job, _said(result))
                    yield job, result
        finally:
            display.close()

    def _split(self, job: Job) -> list[Job]:
        """Queue every cell of a block as a job of its own, which takes longer than its share."""
        alone = [_part(replace(job, seconds=2 * job.seconds), [cell]) for cell in job.cells]
        self._queue.extend(alone)
        return alone

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
        free = [cell for cell in cells if self.store.reserve(cell.id)]
        held = [cell for cell in cells if cell not in free]
        newest = self.store.ledger().newest() if free else {}
        mine = []
        for cell in free:
            found = newest.get(cell.id)
            if self._finished.wants(found):
                mine.append(cell)
            elif found is not None:
                self._found(found)
                self.store.release(cell.id)
        return mine, held

    def _keep(self, job: Job, result: JobResult) -> None:
        """Store what a job left, before anything else is done with it."""
        for outcome in result.outcomes:
            self._tally.ended(outcome)
            if outcome.artifact:
                self.store.write_artifact(outcome.cell.id, outcome.artifact)
            self.store.append(self.record_of(outcome, result.plugins))
            self.store.release(outcome.cell.id)
        if result.trace:
            with (self.store.folder / LOG).open("a", encoding="utf-8") as log:
                log.write(f"{datetime.now(UTC).isoformat()} {job.label}\n{result.trace}\n")

    def record_of(self, outcome: Outcome, plugins: str = "") -> Record:
        """The record of how a cell ended here and now."""
        cell = outcome.cell
        # an edit between our import and that of the worker leaves nothing to say for certain
        same = plugins in ("", self._code.source.plugins)
        before = self.store.ledger().newest().get(cell.id)
        attempt = before.attempt + 1 if before else 1
        return Record(
            cell={name: getattr(cell, name) for name in cell.__dataclass_fields__},
            id=cell.id,
            status=outcome.status,
            detail=outcome.detail,
            environment=self._environment,
            attempt=attempt,
            seconds=round(outcome.seconds, 3),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=outcome.rows,
            environmental=outcome.environmental,
            code=self._code.digest(cell, outcome.made) if same else "",
            made=outcome.made,
            data=dict(outcome.data),
            unmeasured=outcome.unmeasured,
        )


def speed_job(cells: tuple[Cell, ...], reference: Cell, expected: float) -> Job:
    """A job that times cells in one block, beside the reference."""
    what = f"{len(cells)} variants" if len(cells) > 1 else parse(cells[0].variant).name
    return Job(
        kind="speed",
        label=f"speed {reference.task} ({what})",
        cells=cells,
        reference=reference,
        seconds=expected,
        timeout_s=max(LEAST_TIMEOUT_S, SLACK * expected),
    )


def _part(job: Job, cells: Sequence[Cell]) -> Job:
    """A job of some cells of a job, with their share of its time."""
    if len(cells) == len(job.cells):
        return job
    assert job.reference is not None, "only speed blocks have several cells"
    return speed_job(tuple(cells), job.reference, job.seconds * len(cells) / len(job.cells))


def _said(result: JobResult) -> str:
    if result.certificate is not None:
        good = result.certificate["passed"] and not result.certificate["failed"]
        return "green" if good else "red"
    statuses = [outcome.status for outcome in result.outcomes]
    others = [status for status in statuses if status != "ok"]
    if not others:
        return "ok"
    return f"ok but {others[0]}" if "ok" in statuses else others[0]
