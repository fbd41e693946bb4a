"""What became of the cells of a run: counts by status, and why some have no value."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.running.job import Outcome
from results.row import STATUSES, Record, Status, Unmeasured

FAILURES = tuple(status for status in STATUSES if status not in ("ok", "refused", "other_code"))


@dataclass
class Tally:
    """What became of the cells of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    """Cells of this run, by status."""
    before: Counter[str] = field(default_factory=Counter)
    """Cells that another run had finished, by status."""
    reasons: Counter[tuple[Status, str]] = field(default_factory=Counter)
    """Why asked cells lack a value, of this run or before, by status and sentence."""
    partly: int = 0
    """Asked cells that have values, but lost some of their metrics."""

    @property
    def already(self) -> int:
        """Cells that another run had finished."""
        return self.before.total()

    def found(self, record: Record) -> None:
        """Count a cell that another run had finished."""
        self.before[record.status] += 1
        self._why(record.status, record.detail)
        self._why_partly(record.unmeasured)

    def ended(self, outcome: Outcome) -> None:
        """Count a cell of this run."""
        self.counts[outcome.status] += 1
        self._why(outcome.status, outcome.detail)
        self._why_partly(outcome.unmeasured)

    def _why(self, status: Status, detail: str) -> None:
        if status != "ok":
            self.reasons[status, detail] += 1

    def _why_partly(self, unmeasured: Sequence[Unmeasured]) -> None:
        """Count metrics that should have a value; a refusal is no news of a cell with others."""
        lost = [one for one in unmeasured if one.status != "refused"]
        self.partly += bool(lost)
        for one in lost:
            self._why(one.status, f"{one.metric}: {one.detail}")

    @property
    def refused(self) -> int:
        """Asked cells that were refused."""
        return self.counts["refused"] + self.before["refused"]

    @property
    def with_value(self) -> int:
        """Asked cells that have a value, of today's code or of earlier code that is kept."""
        return sum(self.counts[one] + self.before[one] for one in ("ok", "other_code"))

    @property
    def failures(self) -> list[Status]:
        """Why asked cells lack a value, other than refusals."""
        found = {status for status, _ in self.reasons}
        return [status for status in FAILURES if status in found]

    @property
    def failed(self) -> int:
        """Asked cells that ended without some value for another reason than a refusal."""
        lost = sum(self.counts[status] + self.before[status] for status in FAILURES)
        return lost + self.partly
