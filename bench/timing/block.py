"""One block: speed cells of one shape, timed together with the baseline in one process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from bench.api.cell import Cell
from bench.api.errors import InvalidConfig
from bench.api.foreign import runs_foreign_code
from bench.timing.device import open_device
from bench.timing.reason import Reason
from bench.timing.rounds import Progress, TimedVariant, run_rounds, warm_up
from bench.timing.shape import AttendShape, parse_rounds, parse_shape
from bench.timing.timed_inputs import draw_inputs
from bench.timing.timed_variant import Entered, Setting, count, enter_all
from bench.timing.timer import Clock, timer_for
from results.row import AA_CONTROL, REFERENCE, Row, Unmeasured


class Measured(NamedTuple):
    """What was measured of one cell, and why it lacks some metrics."""

    rows: tuple[Row, ...]
    unmeasured: tuple[Unmeasured, ...] = ()


Outcome = Measured | Reason


def group_blocks(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Put cells that can be timed together into one block each, in the order of first sight.

    A plug-in's cell has a block of its own, where its code changes nobody's times but its own.
    """
    blocks: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        alone = cell.id if runs_foreign_code(cell) else ""
        blocks.setdefault((*_shared(cell), alone), []).append(cell)
    return list(blocks.values())


def measure_block(
    cells: Sequence[Cell],
    reference: Cell,
    *,
    clock: Clock | None = None,
    progress: Progress = lambda done, planned: None,
) -> dict[str, Outcome]:
    """Time cells of one shape and device beside the baseline.

    Everything is built and warmed up before anything is timed. A workload that refuses, fails or
    runs out of memory leaves the block with a reason, and the other workloads and variants go on;
    without the baseline there are no rows of the baseline `reference`. Variants that differ in
    their output or loss alone are the same code here, are timed once and get the same values.

    Args:
        cells: May contain the reference.
        reference: The baseline's cell; it shares shape, protocol, slot, device, dtype and seed.
        clock: Seconds, in the place of the protocol's clock; only differences matter.
        progress: Told the visits made and planned.

    Returns:
        Rows and what is missing among them, or the reason why there are none, by cell id.

    Raises:
        InvalidConfig: The cells do not belong together.
        Refused: The device is not there.
        BenchError: Torch may use several threads on a CPU.
    """
    setting = _setting(cells, reference)
    entered = enter_all((reference, *cells), setting, reference.id)
    beside = _compete(entered, entered[reference.id], setting, clock, progress)
    return {cell.id: _outcome(entered[cell.id], beside, setting) for cell in cells}


def _compete(
    entered: Mapping[str, Entered],
    baseline: Entered,
    setting: Setting,
    clock: Clock | None,
    progress: Progress,
) -> dict[str, TimedVariant]:
    """Time and count everything; return what stands beside each row, by baseline."""
    timer = timer_for(setting.device, setting.protocol.clock, clock)
    baseline.compared = True
    # the same module, timed a second time under another name
    aa_control = TimedVariant(
        AA_CONTROL,
        baseline.works,
        lost=dict(baseline.lost),
        failed=baseline.failed,
        compared=True,
    )
    distinct = list({entry.name: entry for entry in entered.values()}.values())
    everyone = [*distinct, aa_control]
    warm_up(everyone, setting.protocol, timer)
    run_rounds(everyone, setting.protocol, timer, seed=setting.seed, progress=progress)
    for entry in distinct:
        count(entry, setting)
    return (
        {}
        if baseline.failed or aa_control.failed
        else {REFERENCE: baseline, AA_CONTROL: aa_control}
    )


def _shared(cell: Cell) -> tuple[object, ...]:
    return (cell.task, cell.protocol, cell.slot, cell.device, cell.dtype, cell.seed)


def _setting(cells: Sequence[Cell], reference: Cell) -> Setting:
    for cell in cells:
        if cell.kind != "speed" or _shared(cell) != _shared(reference):
            raise InvalidConfig(
                f"cannot time {cell.label!r} beside {reference.label!r}; cells of one block are "
                "speed cells of one shape, protocol, slot, device, dtype and seed."
            )
    shape = parse_shape(reference.task)
    if shape.regime != reference.slot:
        raise InvalidConfig(
            f"{reference.task} has regime {shape.regime}, the cell has slot {reference.slot}; "
            "give both the same."
        )
    device = open_device(reference.device)
    dtype = getattr(torch, reference.dtype, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise InvalidConfig(f"no floating-point dtype {reference.dtype!r}; try float32.")
    protocol = parse_rounds(reference.protocol)
    inputs = draw_inputs(shape, device, dtype, reference.seed)
    return Setting(shape, protocol, inputs, device, reference.seed)


def _outcome(entry: Entered, beside: Mapping[str, TimedVariant], setting: Setting) -> Outcome:
    if entry.failed is not None:
        return entry.failed
    length = setting.shape.length
    reference = beside.get(REFERENCE)
    against = reference.counts if isinstance(reference, Entered) else {}
    rows = _time_rows(entry, beside, length) + _count_rows(entry.counts, against, length)
    if setting.shape.place == "slot":
        rows += _token_rows(rows, setting.shape)
    times = {f"{workload}_time_ms": reason for workload, reason in entry.lost.items()}
    return Measured(
        tuple(rows),
        tuple(
            Unmeasured(metric=metric, status=reason.status, detail=reason.detail)
            for metric, reason in {**times, **entry.uncounted}.items()
        ),
    )


def _time_rows(
    timed_variant: TimedVariant, beside: Mapping[str, TimedVariant], length: int
) -> list[Row]:
    rows = []
    for workload, visits in timed_variant.visits.items():
        for number, value in visits.items():
            rows.append(_row(f"{workload}_time_ms", value, length, number))
            for baseline, other in beside.items():
                twin = other.visits.get(workload, {}).get(number)
                if twin is not None:
                    rows.append(_row(f"{workload}_time_ms", twin, length, number, baseline))
    return rows


def _token_rows(rows: Sequence[Row], shape: AttendShape) -> list[Row]:
    """Tokens that a layer reads and answers in a second, of every visit."""
    tokens = {
        "forward_time_ms": ("prefill_tokens_per_s", shape.batch * shape.queries),
        "decode_step_time_ms": ("decode_tokens_per_s", shape.batch),
    }
    return [
        replace(row, metric=name, value=1000 * count / row.value)
        for row in rows
        if row.metric in tokens and row.value > 0
        for name, count in (tokens[row.metric],)
    ]


def _count_rows(own: Mapping[str, int], reference: Mapping[str, int], length: int) -> list[Row]:
    rows = [_row(metric, value, length) for metric, value in own.items()]
    return rows + [
        _row(metric, reference[metric], length, baseline=REFERENCE)
        for metric in own
        if metric in reference
    ]


def _row(metric: str, value: float, length: int, repeat: int = 0, baseline: str = "") -> Row:
    x = float(length)
    return Row(
        metric=metric, value=float(value), repeat=repeat, axis="length", x=x, baseline=baseline
    )
