"""Work for one process, and what it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.api.cell import Cell
from bench.conformance import RunsOn
from bench.training.kept_weights import Origin
from results.certificate import CertificateEntry
from results.row import Row, Status, Unmeasured


@dataclass(frozen=True)
class Job:
    """Work for a worker: cells to train, analyze or time, or a variant to certify."""

    kind: Literal["quality", "speed", "certificate", "analysis"]
    label: str
    """What the progress line says."""
    cells: tuple[Cell, ...] = ()
    reference: Cell | None = None
    """Baseline of a speed block."""
    variant: str = ""
    """Canonical selector, for certificates."""
    impl: str = "auto"
    repeat: int = 0
    """Trial number, which becomes the `repeat` of the rows."""
    seconds: float = 1.0
    """Expected (s)."""
    timeout_s: float = 600.0
    """Wall time after which the process is ended (s)."""
    patient: bool = False
    """Whether that time counts from the last progress, for what makes progress does not hang."""
    thorough: bool = False
    """Whether a certificate includes compilation, which takes seconds."""
    checks: tuple[str, ...] = ()
    """Checks of a certificate; empty for all of them."""
    on: RunsOn | None = None
    """Where a certificate compares with float64; None for the suite in float64 itself."""
    keep_models: str = ""
    """Folder for trained weights, which analyses read; empty to drop them."""
    origin: Origin = field(default_factory=Origin)
    """What made the result of the cell that is analyzed, and must have made its weights."""
    checkpoint: str = ""
    """File that holds a training until it has ended; empty for none."""
    machine: str = ""
    """`Environment.machine`, which a training that goes on from such a file must share."""


@dataclass(frozen=True)
class Outcome:
    """What became of one cell."""

    cell: Cell
    status: Status
    detail: str = ""
    rows: tuple[Row, ...] = ()
    artifact: dict[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    environmental: bool = False
    """Whether the cause lies outside the code, as missing data do."""
    made: tuple[str, ...] = ()
    """`axis:name` of every registered part that was built."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the data files that were read."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """Metrics that the cell has no value of, though it has others."""


@dataclass(frozen=True)
class JobResult:
    """What a job leaves: outcomes of its cells, or a certificate."""

    outcomes: tuple[Outcome, ...] = ()
    certificate: CertificateEntry | None = None
    trace: str = ""
    """Traceback of an unexpected error, for the log."""
    died: bool = False
    """Whether the process ended without an answer of its own, or with one that nobody can trust."""
    environmental: bool = False
    """Whether a cause outside the code, as no memory, ended a check of the certificate."""
    plugins: str = ""
    """Hash of the plug-ins that the process had loaded."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the code that the process had imported, by id of a cell or by certified variant.

    Empty where it had imported the same files as the driver."""
