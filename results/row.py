"""The record of one finished cell: long rows of values, or the reason there is none."""

import math
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Literal

from bench.api.cell import Cell
from results.stored_types import refuse_wrong_types

Status = Literal["ok", "refused", "out_of_memory", "timeout", "diverged", "failed", "other_code"]
"""How a cell ended; `other_code` has values, but its code or data have changed since."""
STATUSES: tuple[Status, ...] = (
    "ok",
    "refused",
    "out_of_memory",
    "timeout",
    "diverged",
    "failed",
    "other_code",
)

ADDED_FIELDS: dict[str, object] = {
    "environmental": False,
    "code": "",
    "made": (),
    "data": {},
    "unmeasured": (),
}
"""Fields of a record that came after the first ledgers, with what a line without them means."""
RECORD_SCHEMA = 2
"""Raised by hand when the meaning of a field of a row or a record changes."""

REFERENCE, AA_CONTROL = "reference", "aa_control"
"""Baselines of a timing: the run's baseline in the same round, and the same code timed again."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured value of one cell."""

    metric: str
    """Name ending in its unit: `forward_time_ms`, `peak_memory_bytes`, `token_accuracy`."""
    value: float
    """Finite; a value that is not makes the cell `diverged` or `failed`."""
    repeat: int = 0
    """Timing round, or 0."""
    axis: str = ""
    """What `x` counts: `step`, `cpu_s`, `wall_s`, `length`, or empty for a single value."""
    x: float | None = None
    """Position on `axis`."""
    split: str = ""
    """`train`, `validation`, `test`, or empty where no data was scored."""
    baseline: str = ""
    """Whose value it is where it is not the variant's own: `reference` or `aa_control` of the same
    timing round, or the name of a non-neural baseline of the task."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"row {self.metric}: value must be finite, got {self.value}")
        if bool(self.axis) != (self.x is not None):
            raise ValueError(f"row {self.metric}: axis and x go together")


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """Why a cell that has other values has none of one metric."""

    metric: str
    """Name of the metric whose rows are not there."""
    status: Status
    """Never `ok`."""
    detail: str
    """One sentence."""

    def __post_init__(self) -> None:
        if self.status == "ok" or not self.detail:
            raise ValueError(f"{self.metric} is unmeasured, status {self.status}: say why")


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line of a ledger: a finished cell with all its rows, whatever happened."""

    cell: dict[str, object]
    """`asdict` of the cell that was asked."""
    id: str
    """`Cell.id`."""
    status: Status
    detail: str = ""
    """One sentence, empty exactly when the status is `ok`."""
    environment: str
    """Id of the environment record beside the ledger."""
    attempt: int = 1
    seconds: float = 0.0
    """Wall time of the cell (s)."""
    finished: str = ""
    """UTC time, ISO 8601."""
    rows: tuple[Row, ...] = field(default=())
    schema: int = RECORD_SCHEMA
    environmental: bool = False
    """Whether the cause lies outside the code: data that are missing or damaged, a full disk. It
    may be gone later, so such a cell is asked again."""
    code: str = ""
    """Hash of the code that computed it; empty where that is not known."""
    made: tuple[str, ...] = ()
    """`axis:name` of every registered part that was built, which `code` covers."""
    data: dict[str, str] = field(default_factory=dict)
    """File -> start of its SHA-256, for every data file that was read."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """Metrics of a cell with values that have no rows, as of a timed call that ran out of memory.
    They stay with the rows where the status becomes `other_code`."""

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.detail == ""):
            raise ValueError(f"record {self.id}: status {self.status} with detail {self.detail!r}")
        if self.unmeasured and not (self.status in ("ok", "other_code") and self.rows):
            raise ValueError(f"record {self.id}: without any rows its own status says why")

    def value(self, metric: str, split: str) -> float | None:
        """The variant's own value of a metric over a whole split; None where there is none.

        Of a metric that scores no data, `split` is empty.
        """
        for row in self.rows:
            if (row.metric, row.split) == (metric, split) and not row.axis and not row.baseline:
                return row.value
        return None

    def to_json(self) -> dict[str, object]:
        """Plain data for one ledger line."""
        found = asdict(self)
        for name, usual in ADDED_FIELDS.items():  # as lines were written before there was the field
            if found[name] == usual:
                del found[name]
        return found


_CELL_DEFAULTS = {one.name: one.default for one in fields(Cell) if one.default is not MISSING}


def record_from_json(data: dict[str, object]) -> Record:
    """Read one ledger line back.

    Raises:
        TypeError: A value has another type than was written, or is missing.
        ValueError: A value is none that is written.
    """
    rows = data.pop("rows", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("ledger line: rows must be a list of objects")
    without = data.pop("unmeasured", [])
    if not isinstance(without, list) or not all(isinstance(one, dict) for one in without):
        raise ValueError("ledger line: unmeasured must be a list of objects")
    for row in rows:
        refuse_wrong_types(Row, row)
    for one in without:
        refuse_wrong_types(Unmeasured, one)
    refuse_wrong_types(Record, data)
    cell, made = data["cell"], data.pop("made", [])
    assert isinstance(cell, dict), "as the types of a record say"
    if not isinstance(made, list) or not all(isinstance(one, str) for one in made):
        raise ValueError("ledger line: made must be a list of texts")
    refuse_wrong_types(Cell, cell)
    data["cell"] = {**_CELL_DEFAULTS, **cell}
    return Record(
        rows=tuple(Row(**row) for row in rows),
        unmeasured=tuple(Unmeasured(**one) for one in without),
        made=tuple(made),
        **data,  # type: ignore[arg-type]  # values were written by `to_json`
    )
