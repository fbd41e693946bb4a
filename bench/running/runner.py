"""A job in, outcomes out, whatever happens."""

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from bench.api.errors import BenchError, DataDamaged, DataUnavailable, Diverged, Refused
from bench.api.impl import impl_of
from bench.api.missing_method import missing_method, shown_path
from bench.api.opened_files import watch_opened
from bench.api.plain_text import message_of, named_message_of, shortened, storable
from bench.api.process_state import ProcessState
from bench.api.registry import watch_made
from bench.api.selector import parse
from bench.conformance import CHECKS, COMPILE, certify, certify_on
from bench.running.code_of_cells import timed_parts
from bench.running.devices import NO_CUDA
from bench.running.job import Job, JobResult, Outcome
from bench.running.source_code import plugins_digest
from bench.running.used import Used
from bench.timing.block import measure_block
from bench.timing.memory import lost_gpu, release_memory
from bench.timing.reason import Reason, memory_asked, met_the_system, ran_out_of_memory
from bench.timing.shape import parse_shape
from bench.timing.slot_block import measure_slots
from bench.timing.workloads import plain_code
from bench.training.analysis import analyze_cell, model_path
from bench.training.checkpoint import Checkpoint
from bench.training.kept_weights import save_weights
from bench.training.quality import train_cell
from results.certificate import CertificateEntry, certificate_entry
from results.json_values import as_object
from results.plain_data import plain_json, plain_rows

ShareDone = Callable[[float], None]

COMPILER_RECURSION = 2000
"""Depth of calls that TorchInductor asks for where it compiles."""
LONGEST_TRACE = 100_000
"""Characters of a traceback that the log keeps; a message may have megabytes."""


def run_job(job: Job, data_dir: Path | None, share_done: ShareDone) -> JobResult:
    """Do a job, and note which code and data it used; never raises but for an interrupt or an exit.

    What the job changed of the process is put back, and then its cells failed.
    """
    with watch_made() as parts, watch_opened() as opened:
        used = Used(job, parts, opened, data_dir)
        result = _run(used, share_done)
    if job.reference is not None:  # every time is compared with one of its own
        parts |= timed_parts(job.reference.variant)
    data = used.data()
    outcomes = tuple(replace(one, made=used.made, data=data) for one in result.outcomes)
    return replace(result, outcomes=outcomes, plugins=plugins_digest())


def _run(used: Used, share_done: ShareDone) -> JobResult:
    job = used.job
    start = time.perf_counter()
    # torch.compile raises the limit to this, and that is no change of a variant's
    sys.setrecursionlimit(max(sys.getrecursionlimit(), COMPILER_RECURSION))
    before = ProcessState.now()
    try:
        result = _plain(_done(used, share_done, start))
    except Exception as error:  # noqa: BLE001  a crash must become a row
        reason, trace = reason_of(error), trace_of(error)
        result = None
    except BaseException:
        before.undo()
        raise
    if result is None:
        # the error has gone by now, and with it the frames that held the tensors of the cell
        if reason.status == "out_of_memory":
            release_memory()
        result = failed_result(job, reason, time.perf_counter() - start, trace)
    if len(job.cells) > 1 and lost_gpu():
        # all that came after the one which lost it failed, too; each of them is asked alone
        result = replace(result, died=True)
    touched = before.undo()
    return _without_values(job, result, touched) if touched else result


def _done(used: Used, share_done: ShareDone, start: float) -> JobResult:
    job = used.job
    if job.on is not None:
        found = certify_on(job.variant, job.on, impl_of(job.impl))
        return JobResult(certificate=found.to_json(), environmental=found.environmental)
    if job.kind == "certificate":
        checks = job.checks or ((*CHECKS, COMPILE) if job.thorough else None)
        found = certify(job.variant, checks=checks, impl=plain_code(impl_of(job.impl)))
        return JobResult(certificate=found.to_json(), environmental=found.environmental)
    if job.kind == "speed":
        return _measure(job, share_done, start)
    if job.kind == "analysis":
        return _analyze(job, used.data_dir, start)
    return _train(used, share_done, start)


def _plain(result: JobResult) -> JobResult:
    """The result as files can hold it, whatever a variant or a task put into it."""
    held = result.certificate
    return replace(
        result,
        outcomes=tuple(
            replace(
                outcome,
                rows=plain_rows(outcome.rows),
                artifact=dict(as_object(plain_json(outcome.artifact))),
            )
            for outcome in result.outcomes
        ),
        certificate=held and certificate_entry(as_object(plain_json(held))),
    )


def _without_values(job: Job, result: JobResult, touched: Sequence[str]) -> JobResult:
    """A result without the values that a changed process gave; what failed anyway stays as it is.

    Among several cells nobody knows which one it was, so each of them is asked alone.
    """
    if len(job.cells) > 1:
        return replace(result, died=True)
    who = "it"
    if job.reference is not None and job.cells and job.reference.id != job.cells[0].id:
        who = f"it or its baseline {parse(job.reference.variant).name}"
    reason = Reason(
        "failed", f"{who} changed {', '.join(touched)}; a variant or task leaves that as it was."
    )
    if result.certificate is not None:
        return failed_result(job, reason, 0.0, result.trace)
    outcomes = (
        replace(
            one, status=reason.status, detail=reason.detail, rows=(), unmeasured=(), artifact={}
        )
        if one.status == "ok"
        else one
        for one in result.outcomes
    )
    return replace(result, outcomes=tuple(outcomes))


def failed_result(job: Job, reason: Reason, seconds: float, trace: str = "") -> JobResult:
    """The result of a job that came to nothing."""
    if job.kind == "certificate":
        failed = dict.fromkeys(_asked_checks(job), reason.detail)
        certificate = CertificateEntry(passed=[], skipped={}, failed=failed, expected=[], told={})
        machine = reason.environmental or reason.status == "out_of_memory"
        return JobResult(certificate=certificate, trace=trace, environmental=machine)
    outcomes = tuple(
        Outcome(
            cell, reason.status, reason.detail, seconds=seconds, environmental=reason.environmental
        )
        for cell in job.cells
    )
    return JobResult(outcomes, trace=trace)


def _asked_checks(job: Job) -> list[str]:
    """What failed where a certificate came to nothing: the suite, and every shape."""
    if job.on is None:
        return ["suite"]
    impl = impl_of(job.impl)
    shapes = [job.on.at(shape, impl) for shape in job.on.shapes]
    return [job.on.named("suite", impl), *shapes]


def reason_of(error: BaseException) -> Reason:
    """Status and one sentence for whatever a cell raised."""
    text = message_of(error)
    if isinstance(error, DataUnavailable | DataDamaged):
        return Reason("refused", text, environmental=True)
    if isinstance(error, Refused):
        return Reason("refused", text)
    if isinstance(error, Diverged):
        return Reason("diverged", text)
    if ran_out_of_memory(error):
        return Reason("out_of_memory", f"ran out of memory: {memory_asked(text)}")
    if isinstance(error, BenchError):
        return Reason("failed", text)
    told = missing_method(error) or f"{named_message_of(error)}{_place(error)}"
    return Reason("failed", told, environmental=met_the_system(error))


def _place(error: BaseException) -> str:
    """File and line of the last code outside of libraries that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "site-packages" not in Path(frame.filename).parts]
    if not ours:
        return ""
    return f" ({shown_path(ours[-1].filename)}:{ours[-1].lineno})"


def _train(used: Used, share_done: ShareDone, start: float) -> JobResult:
    job = used.job
    (cell,) = job.cells
    if cell.device == "cuda" and not torch.cuda.is_available():
        raise Refused(NO_CUDA)
    checkpoint = _checkpoint(used)
    try:
        result = train_cell(
            cell, data_dir=used.data_dir, progress=share_done, checkpoint=checkpoint
        )
    except Exception as error:
        # asked again it begins anew, but where the cause lies outside of it, as a full disk does
        if checkpoint is not None and not reason_of(error).environmental:
            checkpoint.remove()
        raise
    if job.keep_models and result.system is not None:
        # before a record says that they are kept
        save_weights(result.system, model_path(Path(job.keep_models), cell), used.origin())
    rows = tuple(replace(row, repeat=job.repeat) for row in result.rows)
    seconds = time.perf_counter() - start
    lost = tuple(result.unmeasured)
    return JobResult((Outcome(cell, "ok", "", rows, result.artifact, seconds, unmeasured=lost),))


def _checkpoint(used: Used) -> Checkpoint | None:
    """Where a training is kept until it has ended.

    What other code, other data or another machine left there is removed. The cell is ours by now,
    so that nobody else goes on from it.
    """
    if not used.job.checkpoint:
        return None
    kept = Checkpoint(Path(used.job.checkpoint), facts=used.facts)
    left = kept.stored_facts()
    if left is not None and not used.agrees(left):
        kept.remove()
    return kept


def _analyze(job: Job, data_dir: Path | None, start: float) -> JobResult:
    (cell,) = job.cells
    rows = analyze_cell(cell, Path(job.keep_models), job.origin, data_dir)
    return JobResult((Outcome(cell, "ok", "", tuple(rows), {}, time.perf_counter() - start),))


def _measure(job: Job, share_done: ShareDone, start: float) -> JobResult:
    assert job.reference is not None, "a speed block has a baseline"
    slots = parse_shape(job.reference.task).place == "slot"
    found = (measure_slots if slots else measure_block)(
        job.cells,
        job.reference,
        progress=lambda done, planned: share_done(done / max(1, planned)),
    )
    seconds = (time.perf_counter() - start) / len(job.cells)
    outcomes = []
    for cell in job.cells:
        outcome = found[cell.id]
        if isinstance(outcome, Reason):
            status, detail, machine = outcome
            outcomes.append(Outcome(cell, status, detail, seconds=seconds, environmental=machine))
        else:
            rows, unmeasured = outcome
            outcomes.append(Outcome(cell, "ok", "", rows, seconds=seconds, unmeasured=unmeasured))
    return JobResult(tuple(outcomes))


def trace_of(error: BaseException) -> str:
    """The traceback of an unexpected error, for the log; empty for one that says it all."""
    if isinstance(error, BenchError):
        return ""
    return storable(shortened("".join(traceback.format_exception(error)), LONGEST_TRACE))
