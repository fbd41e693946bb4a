"""Train and score one cell."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from bench.api.batch import Batch
from bench.api.cell import Cell
from bench.api.metric import Scored
from bench.api.plain_text import named_message_of
from bench.api.task import Split, Task
from bench.training.assemble import Assembled, assemble
from bench.training.checkpoint import Checkpoint, OtherData
from bench.training.evaluate import (
    Clock,
    Evaluated,
    attention_maps,
    evaluate,
    example_maps,
    score_rows,
)
from bench.training.fit import fit_outputs
from bench.training.network_size import forward_flops
from bench.training.precision import computing, place
from bench.training.protocol import AdamProtocol, read_protocol
from bench.training.state_size import state_bytes
from bench.training.system import System
from bench.training.training import Training, start_training
from results.row import Row, Unmeasured

NETWORK_FLOPS = "network_forward_flops_count"
"""Metric of what one forward pass of the whole network computes."""
Progress = Callable[[float], None]
"""Called with the share of the cell that is done."""


@dataclass
class QualityResult:
    """What a finished cell leaves."""

    rows: list[Row] = field(default_factory=list)
    artifact: dict[str, object] = field(default_factory=dict)
    unmeasured: list[Unmeasured] = field(default_factory=list)
    system: System | None = None


def train_cell(
    cell: Cell,
    *,
    data_dir: Path | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> QualityResult:
    """Train one quality cell and score it on validation and test.

    The test split is read once, at the end. Seeds draw initialization, data order, dropout and
    generated data.

    Args:
        cell: What to train.
        data_dir: A data directory, or None for the environment's.
        clock: Seconds that count as training; None for the device's own.
        progress: Told the share of the budget that is spent.
        checkpoint: Where training is kept until it has ended. What is there already is gone on
            from, and ends in the same weights.

    Raises:
        Refused: The combination has no meaning.
        DataUnavailable: The data are not on this machine.
        Diverged: Training produced a value that is not finite.
    """
    devices = [torch.device("cuda")] if cell.device == "cuda" else []
    used = clock or default_clock(cell.device)
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(cell.seed)
        try:
            return _train_cell(cell, data_dir, used, progress, checkpoint)
        except OtherData:
            torch.manual_seed(cell.seed)
            # its file has gone, so this begins anew, and is kept as well
            return _train_cell(cell, data_dir, used, progress, checkpoint)


def default_clock(device: str) -> Clock:
    """CPU seconds of this process on a CPU, synchronized wall seconds on a GPU."""
    if device != "cuda":
        return time.process_time

    def synchronized() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return synchronized


def _train_cell(
    cell: Cell,
    data_dir: Path | None,
    clock: Clock,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> QualityResult:
    built = assemble(cell, data_dir)
    system = built.system
    place(system, cell)
    protocol = read_protocol(cell.protocol)
    run = start_training(system, protocol, cell.seed, clock, computing(cell))
    result = QualityResult(rows=_size_rows(built), system=system)
    fitted = fit_outputs(system, built.task, protocol.batch, cell.seed, clock)
    timed = clocked(cell.device)
    if fitted is not None:
        result.rows.append(Row(metric=f"fit_{timed}", value=fitted))
    curves, validated = _train(run, built.task, cell, progress, checkpoint)
    result.rows += curves
    result.rows += score_rows([s for s in validated.scores if not s.axis], "validation")
    result.rows += _area_rows(built.task, run, "validation") + _choice_rows(built.task, run)
    if cell.kind == "trial":
        # a study selects on validation; the test split stays unread
        result.rows += _cost_rows(run, validated, timed)
        return result
    device = torch.device(cell.device)
    with computing(cell):
        tested = evaluate(built.task, system.there, "test", device, clock)
        examples = example_maps(built.task, system.there, device)
        result.rows += _state_rows(run)
    result.rows += score_rows(tested.scores, "test") + _cost_rows(run, tested, timed)
    result.rows += _baseline_rows(built.task)
    result.rows += _area_rows(built.task, run, "test")
    _count_flops(result, built.task, cell)
    result.artifact = {
        "attention": attention_maps(built.task, tested.answers, 3),
        "examples": examples,
        "samples": [s._asdict() for s in built.task.samples(tested.answers, 5)],
        "notes": dict(built.task.notes),
    }
    return result


def _train(
    run: Training,
    task: Task,
    cell: Cell,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> tuple[list[Row], Evaluated]:
    """Update until the protocol is done; returns the curves, and the validation that counts.

    That is the best one where the protocol has patience, and the weights are those of it. Else it
    is the last.
    """
    protocol = run.protocol
    watched = task.choosing_metric() if protocol.patience else task.watched_metric()
    device, timed = torch.device(cell.device), clocked(cell.device)
    rows = (checkpoint and checkpoint.load(run)) or []
    for batch in _unseen(run, _batches(task, protocol, cell, device), checkpoint):
        run.update(batch)
        if progress is not None:
            progress(run.share)
        if run.step % protocol.evaluate_every and not run.finished:
            continue
        with computing(cell):
            backbone, wanted = run.system.there, task.needs_weights
            validated = evaluate(
                task, backbone, "validation", device, run.clock, want_weights=wanted
            )
        rows += _curve_rows(run, validated, timed)
        plain = validated.value(watched.name)
        reached = task.choosing_value(validated.scores) if protocol.patience else plain
        run.look(validated, reached, watched)
        if run.is_good(watched) or run.patience.over or run.finished:
            break
        if checkpoint is not None:
            checkpoint.save(run, rows, batch)
    run.patience.restore(run.system)
    return rows, run.patience.validated or validated


def _unseen(
    run: Training, batches: Iterator[Batch], checkpoint: Checkpoint | None
) -> Iterator[Batch]:
    """The batches that a training has not seen, which is all of them unless it was resumed.

    Raises:
        OtherData: The last one that it has seen is another one now.
    """
    done = run.step
    for number, batch in enumerate(batches):
        if number < done:
            run.pass_over(batch)
            if number == done - 1 and checkpoint is not None:
                checkpoint.compare(batch)
        else:
            yield batch


def _batches(
    task: Task, protocol: AdamProtocol, cell: Cell, device: torch.device
) -> Iterator[Batch]:
    """The batches of a cell, always the same."""
    generator = torch.Generator().manual_seed(cell.seed)
    for batch in task.training(protocol.batch, generator):
        yield batch.to(device)


def _baseline_rows(task: Task) -> list[Row]:
    """The ranking metric of non-neural baselines, to read the others by."""
    primary = task.ranking_metric().name
    return [
        Row(metric=primary, value=value, split="test", baseline=name)
        for name, value in task.baselines().items()
    ]


def _area_rows(task: Task, run: Training, split: Split) -> list[Row]:
    """The area under the validation curve, where it ranks.

    It stands among the scores of validation, and among those of the test too, so that one place
    holds what ranks.
    """
    headline = task.headline
    if headline is None or headline.kind != "area_under_curve" or not run.curve:
        return []
    # what ran out of its time, and not what was good enough, has no further steps
    steps = run.step if run.finished else run.protocol.steps
    return [Row(metric=headline.metric.name, value=headline.area(run.curve, steps), split=split)]


def _choice_rows(task: Task, run: Training) -> list[Row]:
    """What chose the weights, where the scores of validation do not have it yet."""
    metric = task.choosing_metric().name
    known = metric in {task.watched_metric().name, *(one.name for one in task.all_metrics())}
    if known or run.patience.value is None:
        return []
    return [Row(metric=metric, value=run.patience.value, split="validation")]


def _size_rows(built: Assembled) -> list[Row]:
    """Parameters of the whole network and of the slots that hold the variant."""
    whole = sum(p.numel() for p in built.system.parameters())
    slots = built.system.there.variant_slots()
    inside = sum(p.numel() for slot in slots for p in slot.parameters())
    return [
        Row(metric="parameters_count", value=float(whole)),
        Row(metric="slot_parameters_count", value=float(inside)),
    ]


def _count_flops(result: QualityResult, task: Task, cell: Cell) -> None:
    """Add the FLOPs of the network before its training, counted on another one like it.

    Whatever the counter cannot follow ends no trained cell.
    """
    torch.manual_seed(cell.seed)
    try:
        new = assemble(cell, None, task).system
        place(new, cell)
        flops = forward_flops(new, task, cell)
    except Exception as error:  # noqa: BLE001  whatever an operation of a plug-in raises there
        reason = f"FLOPs were not counted: {named_message_of(error)}"
        result.unmeasured.append(Unmeasured(metric=NETWORK_FLOPS, status="failed", detail=reason))
    else:
        result.rows.append(Row(metric=NETWORK_FLOPS, value=float(flops)))


def _state_rows(run: Training) -> list[Row]:
    """What decoding keeps after the longest sequence of training, where attention is causal."""
    kept = None if run.longest is None else state_bytes(run.system.there, run.longest)
    return [] if kept is None else [Row(metric="state_bytes", value=float(kept))]


def clocked(device: str) -> str:
    """Ending of what the default clock of a device tells, and its axis: `cpu_s` or `wall_s`."""
    return "wall_s" if device == "cuda" else "cpu_s"


def _curve_rows(run: Training, validated: Evaluated, timed: str) -> list[Row]:
    """Validation scores and training loss, against steps and against seconds."""
    step, seconds = float(run.step), run.seconds
    mean = statistics.fmean(run.losses[run.looked :])
    rows = [Row(metric="train_loss_nats", value=mean, axis="step", x=step, split="train")]
    plain: list[Scored] = [scored for scored in validated.scores if not scored.axis]
    for axis, x in (("step", step), (timed, seconds)):
        rows += [
            Row(metric=s.metric, value=s.value, axis=axis, x=x, split="validation") for s in plain
        ]
    return rows


def _cost_rows(run: Training, tested: Evaluated, timed: str) -> list[Row]:
    rows = [
        Row(metric="train_steps_count", value=float(run.step)),
        Row(metric=f"train_{timed}", value=run.seconds),
        Row(metric="train_step_time_ms", value=1000 * statistics.median(run.step_seconds)),
        Row(metric="train_tokens_per_s", value=run.tokens / max(run.seconds, 1e-9)),
    ]
    if run.patience.weights:
        rows.append(Row(metric="best_step_count", value=float(run.patience.step)))
    if tested.decode_seconds > 0:
        speed = tested.decoded_tokens / tested.decode_seconds
        rows.append(Row(metric="decode_tokens_per_s", value=speed))
    return rows
