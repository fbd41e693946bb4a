"""Which stored cells count as finished: those of the code and the data of today (ADR 17)."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from bench.api.cell import cell_from_dict
from bench.running.code_of_cells import CodeOfCells
from bench.running.read_files import DataFiles
from results.row import Record, Status

OTHER_CODE = "the code or the data have changed since, so that it is not ranked."


class Finished:
    """What a run asks again of what was stored before."""

    def __init__(
        self,
        before: Iterable[Record],
        code: CodeOfCells,
        data: DataFiles,
        retry: Collection[Status],
        *,
        keep_old: bool,
    ) -> None:
        """Take the newest records of a run folder, as they are before the run.

        Args:
            before: One record a cell.
            code: The code of today.
            data: The data of today.
            retry: Statuses that are asked again.
            keep_old: Whether results of other code or data stay.
        """
        self._attempts = {record.id: record.attempt for record in before}
        self._code = code
        self._data = data
        self._retry = frozenset(retry)
        self._keep_old = keep_old
        self._ran: set[str] = set()

    def wants(self, found: Record | None) -> bool:
        """Whether to run a cell: never finished, asked again, or of other code or data.

        A cause outside the code may be gone by now, and only running tells. What this run has
        finished is not asked again. What another one beside it has finished meanwhile is asked
        only if it is of other code or data.
        """
        if found is None:
            return True
        if found.id in self._ran:
            return False
        statuses = {found.status, *(one.status for one in found.unmeasured)}
        again = found.environmental or not statuses.isdisjoint(self._retry)
        before = found.attempt <= self._attempts.get(found.id, 0)
        # what ended without a value has none that could be kept
        kept = self._keep_old and found.status in ("ok", "other_code")
        return (before and again) or (not kept and self.outdated(found))

    def ran(self, cell_id: str) -> None:
        """Note that this run has finished a cell."""
        self._ran.add(cell_id)

    def outdated(self, record: Record) -> bool:
        """Whether other code or other data made a result than are here now."""
        if record.code != self._code.digest(cell_from_dict(dict(record.cell)), record.made):
            return True
        return bool(self._data.changed(record.data))

    def restated(self, record: Record) -> Record:
        """The record with the status of today: `ok`, or `other_code`; itself where it has that.

        What this run has finished stays as it is.
        """
        if record.id in self._ran or record.status not in ("ok", "other_code"):
            return record
        status: Status = "other_code" if self.outdated(record) else "ok"
        if status == record.status:
            return record
        detail = OTHER_CODE if status == "other_code" else ""
        return replace(record, status=status, detail=detail, attempt=record.attempt + 1)
