"""Results of a session: which cells have one that counts, and how the others get theirs stored."""

from collections.abc import Iterable
from datetime import UTC, datetime

from bench.api.cell import Cell
from bench.running.code_of_cells import CodeOfCells
from bench.running.finished import Finished
from bench.running.job import Job, JobResult, Outcome
from bench.running.tally import Tally
from results.row import Record
from results.store import Store

LOG = "log.txt"
"""File of a run folder with the traceback of every unexpected error."""


class KeptResults:
    """Makes the record of each cell that has ended, and keeps it with what the cell left."""

    def __init__(
        self, store: Store, finished: Finished, code: CodeOfCells, tally: Tally, environment: str
    ) -> None:
        """Take what is shared by all cells of a session.

        Args:
            store: Where results go.
            finished: Which cells need not run.
            code: The code of today, which records name.
            tally: Counts how cells end.
            environment: Id of this machine's facts.
        """
        self._store = store
        self._finished = finished
        self._code = code
        self._tally = tally
        self._environment = environment
        self.of_other_code = 0
        """Results that workers made by other code than ours."""

    def wants(self, cell: Cell) -> bool:
        """Whether a run would do a cell, as `Finished.wants` says."""
        return self._finished.wants(self._store.newest_of(cell.id))

    def todo(self, cells: Iterable[Cell]) -> set[str]:
        """Ids of the cells to run; counts those that have finished."""
        newest = self._store.ledger().newest()  # one look for all of them
        asked = {cell.id for cell in cells}
        todo = {id_ for id_ in asked if self._finished.wants(newest.get(id_))}
        for id_ in asked - todo:
            self._found(newest[id_])
        return todo

    def reserve(self, cell: Cell) -> bool:
        """Whether a cell is ours now, and not held by another process."""
        return self._store.reserve(cell.id)

    def give_back(self, cells: Iterable[Cell]) -> None:
        """Leave cells that are ours, and that did not run, to whoever asks for them next."""
        for cell in cells:
            self._store.release(cell.id)

    def done_elsewhere(self, cell: Cell) -> bool:
        """Whether a cell that is ours was finished before; then it is counted and given back."""
        found = self._store.newest_of(cell.id)
        if found is None or self._finished.wants(found):
            return False
        self._found(found)
        self._store.release(cell.id)
        return True

    def _found(self, record: Record) -> None:
        """Count a finished cell, and write down whether its code and data are those of today."""
        today = self._finished.restated(record)
        if today is not record:
            self._store.append(today)
        self._tally.found(today)

    def keep(self, job: Job, result: JobResult) -> None:
        """Store what a job left, before anything else is done with it."""
        for outcome in result.outcomes:
            self._tally.ended(outcome)
            if outcome.artifact:
                self._store.write_artifact(outcome.cell.id, outcome.artifact)
            record = self.record_of(outcome, result)
            self.of_other_code += not record.code
            self._store.append(record)
            self._finished.ran(outcome.cell.id)
            self._store.release(outcome.cell.id)
        if result.trace:
            with (self._store.folder / LOG).open("a", encoding="utf-8") as log:
                log.write(f"{datetime.now(UTC).isoformat()} {job.label}\n{result.trace}\n")

    def code_of(self, result: JobResult, name: str, ours: str) -> str:
        """The hash of the code that a worker ran; empty where that is not our code.

        An edit after our import makes other code, of which nothing is said for certain.

        Args:
            result: What the worker left.
            name: Id of a cell, or a certified variant.
            ours: Hash of our code of it.
        """
        same_plugins = result.plugins in ("", self._code.source.plugins)
        return ours if same_plugins and result.code.get(name, ours) == ours else ""

    def record_of(self, outcome: Outcome, result: JobResult) -> Record:
        """The record of how a cell ended here and now.

        Args:
            outcome: How it ended.
            result: What its worker left.
        """
        cell = outcome.cell
        code = self.code_of(result, cell.id, self._code.digest(cell, outcome.made))
        before = self._store.newest_of(cell.id)
        return Record(
            cell={name: getattr(cell, name) for name in cell.__dataclass_fields__},
            id=cell.id,
            status=outcome.status,
            detail=outcome.detail,
            environment=self._environment,
            attempt=before.attempt + 1 if before else 1,
            seconds=round(outcome.seconds, 3),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=outcome.rows,
            environmental=outcome.environmental,
            code=code,
            made=outcome.made,
            data=dict(outcome.data),
            unmeasured=outcome.unmeasured,
        )
