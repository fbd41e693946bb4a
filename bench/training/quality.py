"""Train and score one cell."""

import math
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from bench.api.batch import Batch
from bench.api.cell import Cell
from bench.api.errors import Diverged
from bench.api.metric import Metric, Scored
from bench.api.noise import Noise
from bench.api.task import Split, Task
from bench.api.trace import Mode
from bench.training.assemble import Assembled, assemble
from bench.training.evaluate import (
    Clock,
    Evaluated,
    attention_maps,
    evaluate,
    example_maps,
    score_rows,
)
from bench.training.fit import fit_outputs
from bench.training.precision import computing, place
from bench.training.protocol import AdamProtocol, read_protocol
from bench.training.state_size import state_bytes
from bench.training.system import Carry, System
from results.row import Row

Progress = Callable[[float], None]
"""Called with the share of the cell that is done."""


@dataclass
class QualityResult:
    """What a finished cell leaves."""

    rows: list[Row] = field(default_factory=list)
    artifact: dict[str, object] = field(default_factory=dict)
    system: System | None = None


@dataclass
class Training:
    """A system on its way: optimizer, carry, clocks and the curve so far."""

    system: System
    optimizer: torch.optim.Optimizer
    protocol: AdamProtocol
    clock: Clock
    seed: int
    carry: Carry
    precision: AbstractContextManager[object] = field(default_factory=nullcontext)
    """Entered where the losses of a step are computed."""
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    losses: list[float] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)
    """Steps and scores of the validations."""
    longest: Batch | None = None
    """A batch of the longest sequences up to now."""

    def update(self, batch: Batch) -> None:
        """Take one step on one batch.

        Raises:
            Diverged: The loss is not finite.
        """
        if self.longest is None or batch.inputs.shape[1] > self.longest.inputs.shape[1]:
            self.longest = batch
        start = self.clock()
        protocol = self.protocol
        for group in self.optimizer.param_groups:
            group["lr"] = protocol.lr * min(1.0, (self.step + 1) / max(1, protocol.warmup))
        mode = Mode(
            read="train",
            noise=Noise(self.seed * 1_000_003 + self.step),
            progress=self.share,
            want_weights=self.wants_weights,
        )
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision:
            terms, self.carry = self.system.losses(batch, mode, self.carry)
        loss = torch.stack(list(terms.values())).sum() if len(terms) > 1 else terms["nll"]
        loss.backward()
        nn.utils.clip_grad_norm_(self.system.parameters(), protocol.clip)
        self.optimizer.step()
        # one look at all three: each makes the host wait for a GPU
        seen = (terms["nll"].detach(), loss.detach(), batch.mask.sum())
        value, whole, tokens = torch.stack([one.double() for one in seen]).tolist()
        taken = self.clock() - start
        self.step += 1
        self.seconds += taken
        self.step_seconds.append(taken)
        self.tokens += int(tokens)
        self.losses.append(value)
        if not math.isfinite(whole):
            raise Diverged(f"the training loss was {whole} at step {self.step}.")

    def is_good(self, validated: Evaluated, watched: Metric) -> bool:
        """Keep a validation score; whether it is as good as the protocol asks for."""
        reached = validated.value(watched.name)
        if reached is None:
            return False
        self.curve.append((self.step, reached))
        level = self.protocol.stop_at
        return level > 0 and (reached <= level if watched.better == "lower" else reached >= level)

    @property
    def wants_weights(self) -> bool:
        """Whether a loss or an output reads single weights."""
        parts = [*self.system.named_losses.values(), self.system.there.output]
        return self.system.joint is not None or any("weights" in part.needs for part in parts)

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        limit = self.protocol.cpu_seconds
        return self.step >= self.protocol.steps or (limit > 0 and self.seconds >= limit)

    @property
    def share(self) -> float:
        """Share of the budget that is spent."""
        shares = [self.step / self.protocol.steps]
        if self.protocol.cpu_seconds > 0:
            shares.append(self.seconds / self.protocol.cpu_seconds)
        return min(1.0, max(shares))


def start_training(
    system: System,
    protocol: AdamProtocol,
    seed: int,
    clock: Clock,
    precision: AbstractContextManager[object] | None = None,
) -> Training:
    """Make the optimizer for a system that is already on its device."""
    optimizer = torch.optim.AdamW(
        system.parameters(), lr=protocol.lr, weight_decay=protocol.weight_decay, fused=True
    )
    carry = system.init_carry()
    return Training(system, optimizer, protocol, clock, seed, carry, precision or nullcontext())


def train_cell(
    cell: Cell,
    *,
    data_dir: Path | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> QualityResult:
    """Train one quality cell and score it on validation and test.

    The test split is read once, at the end. Seeds draw initialization, data order, dropout and
    generated data.

    Raises:
        Refused: The combination has no meaning.
        DataUnavailable: The data are not on this machine.
        Diverged: Training produced a value that is not finite.
    """
    devices = [torch.device("cuda")] if cell.device == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(cell.seed)
        return _train_cell(cell, data_dir, clock or default_clock(cell.device), progress)


def default_clock(device: str) -> Clock:
    """CPU seconds of this process on a CPU, synchronized wall seconds on a GPU."""
    if device != "cuda":
        return time.process_time

    def synchronized() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return synchronized


def _train_cell(
    cell: Cell, data_dir: Path | None, clock: Clock, progress: Progress | None
) -> QualityResult:
    built = assemble(cell, data_dir)
    device = torch.device(cell.device)
    system = built.system
    place(system, cell)
    protocol = read_protocol(cell.protocol)
    run = start_training(system, protocol, cell.seed, clock, computing(cell))
    result = QualityResult(rows=_size_rows(built), system=system)
    fitted = fit_outputs(system, built.task, protocol.batch, cell.seed, clock)
    timed = clocked(cell.device)
    if fitted is not None:
        result.rows.append(Row(metric=f"fit_{timed}", value=fitted))
    generator = torch.Generator().manual_seed(cell.seed)
    watched = built.task.watched_metric()
    seen = 0
    for batch in built.task.training(protocol.batch, generator):
        run.update(batch.to(device))
        if progress is not None:
            progress(run.share)
        if run.step % protocol.evaluate_every == 0 or run.finished:
            with computing(cell):
                validated = evaluate(built.task, system.there, "validation", device, clock)
            result.rows += _curve_rows(run, validated, seen, timed)
            seen = len(run.losses)
            if run.is_good(validated, watched):
                break
        if run.finished:
            break
    result.rows += score_rows([s for s in validated.scores if not s.axis], "validation")
    result.rows += _area_rows(built.task, run, "validation")
    if cell.kind == "trial":
        # a study selects on validation; the test split stays unread
        result.rows += _cost_rows(run, validated, timed)
        return result
    with computing(cell):
        tested = evaluate(built.task, system.there, "test", device, clock)
        examples = example_maps(built.task, system.there, device)
        result.rows += _state_rows(run)
    result.rows += score_rows(tested.scores, "test") + _cost_rows(run, tested, timed)
    result.rows += _baseline_rows(built.task)
    result.rows += _area_rows(built.task, run, "test")
    result.artifact = {
        "attention": attention_maps(built.task, tested.answers, 3),
        "examples": examples,
        "samples": [s._asdict() for s in built.task.samples(tested.answers, 5)],
        "notes": dict(built.task.notes),
    }
    return result


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


def _size_rows(built: Assembled) -> list[Row]:
    """Parameters of the whole network and of the slots that hold the variant."""
    whole = sum(p.numel() for p in built.system.parameters())
    slots = built.system.there.variant_slots()
    inside = sum(p.numel() for slot in slots for p in slot.parameters())
    return [
        Row(metric="parameters_count", value=float(whole)),
        Row(metric="slot_parameters_count", value=float(inside)),
    ]


def _state_rows(run: Training) -> list[Row]:
    """What decoding keeps after the longest sequence of training, where attention is causal."""
    kept = None if run.longest is None else state_bytes(run.system.there, run.longest)
    return [] if kept is None else [Row(metric="state_bytes", value=float(kept))]


def clocked(device: str) -> str:
    """Ending of what the default clock of a device tells, and its axis: `cpu_s` or `wall_s`."""
    return "wall_s" if device == "cuda" else "cpu_s"


def _curve_rows(run: Training, validated: Evaluated, seen: int, timed: str) -> list[Row]:
    """Validation scores and training loss, against steps and against seconds."""
    step, seconds = float(run.step), run.seconds
    mean = statistics.fmean(run.losses[seen:])
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
    if tested.decode_seconds > 0:
        speed = tested.decoded_tokens / tested.decode_seconds
        rows.append(Row(metric="decode_tokens_per_s", value=speed))
    return rows
