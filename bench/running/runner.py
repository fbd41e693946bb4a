"""A job in, outcomes out, whatever happens: the only code that catches broadly."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch

from bench.api.cell import Cell
from bench.api.errors import BenchError, DataDamaged, DataUnavailable, Diverged, Refused
from bench.api.variant import impl_of
from bench.conformance import CHECKS, COMPILE, certify
from bench.running.devices import NO_CUDA
from bench.timing.block import measure_block
from bench.timing.reason import Reason, ran_out_of_memory
from bench.training.analysis import analyze_cell, model_path
from bench.training.quality import train_cell
from results.certificate import CertificateEntry
from results.row import Row, Status

ShareDone = Callable[[float], None]


@dataclass(frozen=True)
class Job:
    """Work for one fresh process: cells to train, analyze or time, or a variant to certify."""

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
    thorough: bool = False
    """Whether a certificate includes compilation, which takes seconds."""
    keep_models: str = ""
    """Folder for trained weights, which analyses read; empty to drop them."""


@dataclass(frozen=True)
class Outcome:
    """What became of one cell."""

    cell: Cell
    status: Status
    detail: str = ""
    rows: tuple[Row, ...] = ()
    artifact: dict[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    lacks_data: bool = False
    """Whether data are missing or damaged."""


@dataclass(frozen=True)
class JobResult:
    """What a job leaves: outcomes of its cells, or a certificate."""

    outcomes: tuple[Outcome, ...] = ()
    certificate: CertificateEntry | None = None
    trace: str = ""
    """Traceback of an unexpected error, for the log."""
    died: bool = False
    """Whether the process ended without an answer of its own."""


def run_job(job: Job, data_dir: Path | None, share_done: ShareDone) -> JobResult:
    """Do a job; never raises but for an interrupt."""
    start = time.perf_counter()
    try:
        if job.kind == "certificate":
            checks = (*CHECKS, COMPILE) if job.thorough else None
            found = certify(job.variant, checks=checks, impl=impl_of(job.impl))
            return JobResult(certificate=found.to_json())
        if job.kind == "speed":
            return _measure(job, share_done, start)
        if job.kind == "analysis":
            return _analyze(job, data_dir, start)
        return _train(job, data_dir, share_done, start)
    except Exception as error:  # noqa: BLE001  a crash must become a row
        return failed_result(job, reason_of(error), time.perf_counter() - start, _trace(error))


def failed_result(job: Job, reason: Reason, seconds: float, trace: str = "") -> JobResult:
    """The result of a job that came to nothing."""
    if job.kind == "certificate":
        failed = {"suite": reason.detail}
        certificate = CertificateEntry(passed=[], skipped={}, failed=failed, expected=[], told={})
        return JobResult(certificate=certificate, trace=trace)
    outcomes = tuple(
        Outcome(cell, reason.status, reason.detail, seconds=seconds, lacks_data=reason.lacks_data)
        for cell in job.cells
    )
    return JobResult(outcomes, trace=trace)


def reason_of(error: Exception) -> Reason:
    """Status and one sentence for whatever a cell raised."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, DataUnavailable | DataDamaged):
        return Reason("refused", text, lacks_data=True)
    if isinstance(error, Refused):
        return Reason("refused", text)
    if isinstance(error, Diverged):
        return Reason("diverged", text)
    if ran_out_of_memory(error):
        return Reason("out_of_memory", f"ran out of memory: {text}")
    if isinstance(error, BenchError):
        return Reason("failed", text)
    return Reason("failed", f"{type(error).__name__}: {text}")


def _train(job: Job, data_dir: Path | None, share_done: ShareDone, start: float) -> JobResult:
    (cell,) = job.cells
    if cell.device == "cuda" and not torch.cuda.is_available():
        raise Refused(NO_CUDA)
    result = train_cell(cell, data_dir=data_dir, progress=share_done)
    if job.keep_models and result.system is not None:
        _save(result.system, model_path(Path(job.keep_models), cell))
    rows = tuple(replace(row, repeat=job.repeat) for row in result.rows)
    seconds = time.perf_counter() - start
    return JobResult((Outcome(cell, "ok", "", rows, result.artifact, seconds),))


def _analyze(job: Job, data_dir: Path | None, start: float) -> JobResult:
    (cell,) = job.cells
    rows = analyze_cell(cell, Path(job.keep_models), data_dir)
    return JobResult((Outcome(cell, "ok", "", tuple(rows), {}, time.perf_counter() - start),))


def _measure(job: Job, share_done: ShareDone, start: float) -> JobResult:
    assert job.reference is not None, "a speed block has a baseline"
    found = measure_block(
        job.cells,
        job.reference,
        progress=lambda done, planned: share_done(done / max(1, planned)),
    )
    seconds = (time.perf_counter() - start) / len(job.cells)
    outcomes = []
    for cell in job.cells:
        outcome = found[cell.id]
        if isinstance(outcome, Reason):
            outcomes.append(Outcome(cell, outcome.status, outcome.detail, seconds=seconds))
        else:
            outcomes.append(Outcome(cell, "ok", "", tuple(outcome), seconds=seconds))
    return JobResult(tuple(outcomes))


def _save(system: torch.nn.Module, path: Path) -> None:
    """Write trained weights; a half-written file never has the final name."""
    from safetensors.torch import save_model  # noqa: PLC0415  an optional feature's library

    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    save_model(system, str(draft))
    draft.replace(path)


def _trace(error: BaseException) -> str:
    if isinstance(error, BenchError):
        return ""
    return "".join(traceback.format_exception(error))
