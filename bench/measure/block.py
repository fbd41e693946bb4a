"""One block: speed cells of one shape, timed together with the baseline in one process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from bench.api.cell import Cell
from bench.api.errors import BenchError, InvalidConfig
from bench.api.registry import CHAIN_AXES
from bench.api.resolve import resolve
from bench.api.variant import IMPLS, Impl, Variant
from bench.measure.device import open_device
from bench.measure.flops import analytic_flops, count_operations
from bench.measure.memory import peak_bytes
from bench.measure.reason import Reason, reason_for
from bench.measure.rounds import Contestant, Progress, run_rounds, warm_up
from bench.measure.shape import AttendShape, Rounds, parse_rounds, parse_shape
from bench.measure.timer import CLOCKS, Clock, Timer, timer_for
from bench.measure.workloads import Inputs, build, draw_inputs, forward_backward, make_works
from bench.measure.workloads import forward as forward_work
from results.row import Row

REFERENCE, SHAM = "reference", "sham"
"""Names of the baseline and of its twin: the same module, timed a second time (A/A)."""

Outcome = list[Row] | Reason


@dataclass(frozen=True)
class Setting:
    """What all cells of a block share."""

    shape: AttendShape
    protocol: Rounds
    inputs: Inputs
    device: torch.device
    seed: int


@dataclass
class Entered(Contestant):
    """A contestant with the variant behind it."""

    variant: Variant | None = None
    counts: dict[str, int] = field(default_factory=dict)
    """What is measured once, by metric."""


def group_blocks(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Put cells that can be timed together into one block each, in the order of first sight."""
    blocks: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        blocks.setdefault(_shared(cell), []).append(cell)
    return list(blocks.values())


def measure_block(
    cells: Sequence[Cell],
    reference: Cell,
    *,
    clock: Clock | None = None,
    progress: Progress = lambda done, planned: None,
    timer: Timer | None = None,
) -> dict[str, Outcome]:
    """Time cells of one shape and device beside the baseline.

    Everything is built and warmed up before anything is timed. A variant that refuses, fails or
    runs out of memory leaves the block with a reason and the others go on; without the baseline
    rows have no `reference_` beside them. A workload that a variant cannot do (weights of a
    mechanism without weights) has no rows. Variants that differ in their output or loss alone are
    the same code here, are timed once and get the same values.

    Args:
        cells: May contain the reference.
        reference: The baseline's cell; it shares shape, protocol, slot, device, dtype and seed.
        clock: Seconds, in the place of the protocol's clock; only differences matter. On a GPU it
            decides nothing but how far ahead work is queued.
        progress: Told the visits made and planned.
        timer: In the place of the device's own.

    Returns:
        Rows or a reason, by cell id.

    Raises:
        InvalidConfig: The cells do not belong together.
        Refused: The device is not there.
        BenchError: Torch may use several threads on a CPU.
    """
    setting = _setting(cells, reference)
    timer = timer or timer_for(setting.device, clock or CLOCKS[setting.protocol.clock])
    entered = _enter_all((reference, *cells), setting)
    baseline = entered[reference.id]
    baseline.compared = True
    sham = Contestant(SHAM, baseline.works, failed=baseline.failed, compared=True)
    distinct = list({entry.name: entry for entry in entered.values()}.values())
    everyone = [*distinct, sham]
    warm_up(everyone, setting.protocol, timer)
    run_rounds(everyone, setting.protocol, timer, seed=setting.seed, progress=progress)
    for entry in distinct:
        _count(entry, setting)
    beside = {} if baseline.failed or sham.failed else {REFERENCE: baseline, SHAM: sham}
    return {cell.id: _outcome(entered[cell.id], beside, setting) for cell in cells}


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


def _enter_all(cells: Iterable[Cell], setting: Setting) -> dict[str, Entered]:
    """Enter each cell, or let it share the contestant that runs the very same code."""
    found: dict[str, Entered] = {}
    by_code: dict[str, Entered] = {}
    for cell in cells:
        code = _code(cell)
        if code not in by_code:
            by_code[code] = _enter(cell, setting)
        found[cell.id] = by_code[code]
    return found


def _code(cell: Cell) -> str:
    """Equal where two variants differ only in what is not timed: heads, output, loss, wiring.

    A control stays alone, because timing the same code twice is what it is for.
    """
    try:
        spec = resolve(cell.variant)
    except BenchError:
        return cell.id
    if spec.entry.control:
        return cell.id
    if spec.mechanism is not None:
        return f"{cell.impl} {spec.mechanism.show()}"
    parts = ("+".join(chosen.show() for chosen in spec.axes[axis]) for axis in CHAIN_AXES)
    return " ".join((cell.impl, *parts))


def _enter(cell: Cell, setting: Setting) -> Entered:
    """Build a variant and call each of its workloads once."""
    try:
        spec = resolve(cell.variant)
        variant = build(spec, setting.shape, _impl(cell.impl), seed=setting.seed)
        variant.to(setting.device, setting.inputs.query.dtype)
        works = make_works(spec, variant, setting.inputs, setting.protocol.asked)
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        return Entered(cell.id, {}, failed=reason_for(error))
    return Entered(cell.id, works, variant=variant)


def _impl(name: str) -> Impl:
    for known in IMPLS:
        if name == known:
            return known
    raise InvalidConfig(f"no impl {name!r}; known: {', '.join(IMPLS)}.")


def _count(entry: Entered, setting: Setting) -> None:
    """Fill in everything that is measured once, in passes of its own."""
    variant = entry.variant
    if variant is None or entry.failed is not None:
        return
    forward = forward_work(variant, setting.inputs)
    try:
        operations = count_operations(forward)
        entry.counts = {
            "parameters_count": sum(p.numel() for p in variant.parameters()),
            "forward_flops_counted_count": operations.matmul_flops,
            "forward_elementwise_count": operations.elementwise,
            "forward_transcendental_count": operations.transcendental,
            "forward_peak_memory_bytes": peak_bytes(forward, setting.device),
        }
        analytic = analytic_flops(variant, setting.shape)
        if analytic is not None:
            entry.counts["forward_flops_analytic_count"] = analytic
        if "forward_backward" in entry.works:
            both = forward_backward(variant, setting.inputs)
            variant.zero_grad(set_to_none=True)
            entry.counts["peak_memory_bytes"] = peak_bytes(both, setting.device)
            variant.zero_grad(set_to_none=True)
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        entry.failed = reason_for(error)


def _outcome(entry: Entered, beside: Mapping[str, Contestant], setting: Setting) -> Outcome:
    if entry.failed is not None:
        return entry.failed
    length = setting.shape.length
    reference = beside.get(REFERENCE)
    against = reference.counts if isinstance(reference, Entered) else {}
    return _time_rows(entry, beside, length) + _count_rows(entry.counts, against, length)


def _time_rows(contestant: Contestant, beside: Mapping[str, Contestant], length: int) -> list[Row]:
    rows = []
    for workload, visits in contestant.visits.items():
        for number, value in visits.items():
            rows.append(_row(f"{workload}_time_ms", value, length, number))
            for prefix, other in beside.items():
                twin = other.visits.get(workload, {}).get(number)
                if twin is not None:
                    rows.append(_row(f"{prefix}_{workload}_time_ms", twin, length, number))
    return rows


def _count_rows(own: Mapping[str, int], reference: Mapping[str, int], length: int) -> list[Row]:
    rows = [_row(metric, value, length) for metric, value in own.items()]
    return rows + [
        _row(f"{REFERENCE}_{metric}", reference[metric], length)
        for metric in own
        if metric in reference
    ]


def _row(metric: str, value: float, length: int, repeat: int = 0) -> Row:
    return Row(metric=metric, value=value, repeat=repeat, axis="length", x=float(length))
