"""What became of the cells of a run: counts by status, and why some have no value."""

from collections import Counter
from dataclasses import dataclass, field

from bench.running.runner import Outcome
from results.row import STATUSES, Record, Status


@dataclass
class Tally:
    """What became of the cells of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    """Cells of this run, by status."""
    before: Counter[str] = field(default_factory=Counter)
    """Cells that another run had finished, by status."""
    reasons: Counter[tuple[Status, str]] = field(default_factory=Counter)
    """Asked cells without a value, of this run or before, by status and sentence."""

    @property
    def already(self) -> int:
        """Cells that another run had finished."""
        return self.before.total()

    def found(self, record: Record) -> None:
        """Count a cell that another run had finished."""
        self.before[record.status] += 1
        self._why(record.status, record.detail)

    def ended(self, outcome: Outcome) -> None:
        """Count a cell of this run."""
        self.counts[outcome.status] += 1
        self._why(outcome.status, outcome.detail)

    def _why(self, status: Status, detail: str) -> None:
        if status != "ok":
            self.reasons[status, detail] += 1

    @property
    def refused(self) -> int:
        """Asked cells that were refused."""
        return self.counts["refused"] + self.before["refused"]

    @property
    def with_value(self) -> int:
        """Asked cells that have a value."""
        return self.counts["ok"] + self.before["ok"]

    @property
    def failures(self) -> list[Status]:
        """Statuses other than a refusal of asked cells without a value."""
        failures = [one for one in STATUSES if one not in ("ok", "refused", "other_code")]
        return [status for status in failures if self.counts[status] + self.before[status]]

    @property
    def failed(self) -> int:
        """Asked cells that ended without a value for another reason than a refusal."""
        return sum(self.counts[status] + self.before[status] for status in self.failures)
