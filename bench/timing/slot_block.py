"""A block of slots: every variant with the heads of the shape, and rows that say which these are.

Stored cells of attention beneath its heads are held by a hash of the code that they reach (ADR 17).
So what only slots need is done before `measure_block` is called, and not inside it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch

from bench.api.cell import Cell
from bench.api.impl import impl_of
from bench.api.places import timed_layers
from bench.api.resolve import VariantSpec, resolve
from bench.timing.affordable_slot import too_large_slot
from bench.timing.block import Measured, Outcome, measure_block
from bench.timing.fitted_heads import dims_of_slot, with_heads_of
from bench.timing.reason import Reason, attempt
from bench.timing.rounds import Progress
from bench.timing.shape import AttendShape, parse_rounds, parse_shape
from bench.timing.timer import Clock
from results.row import Row

OF_ANY_STACK = frozenset({"forward_peak_memory_bytes", "decode_step_peak_memory_bytes"})
"""What is not divided by the layers of a stack. A call holds the projections of one layer at a
time, and the states of all of them, so that reports say that these numbers are of the stack."""


def measure_slots(
    cells: Sequence[Cell],
    reference: Cell,
    *,
    clock: Clock | None = None,
    progress: Progress = lambda done, planned: None,
) -> dict[str, Outcome]:
    """Time slots of one shape beside the baseline, all with the heads of the shape.

    What would not fit the limits of the protocol is refused on a CPU before anything is built at
    full length, the baseline, too. Rows then have no baseline beside them.

    Args:
        cells: May contain the reference.
        reference: The baseline's cell.
        clock: As in `measure_block`.
        progress: Told the visits made and planned.

    Returns:
        As `measure_block`, by the ids of the cells that were asked, with rows of the numbers and
        widths of heads that were used.

    Raises:
        InvalidConfig: The cells do not belong together.
        Refused: The device is not there.
        BenchError: Torch may use several threads on a CPU.
    """
    found: dict[str, Outcome] = {}
    able: dict[str, VariantSpec] = {}
    for cell in cells:
        spec = _able(cell)
        if isinstance(spec, Reason):
            found[cell.id] = spec
        else:
            able[cell.id] = spec
    asked = {cell.id: _with(cell, able[cell.id]) for cell in cells if cell.id in able}
    if not asked:
        return found
    base = _able(reference)
    beneath = None if isinstance(base, Reason) else timed_layers(base)
    # without the baseline the first variant is the reference, and ratios to it are left out
    beside = next(iter(asked.values())) if isinstance(base, Reason) else _with(reference, base)
    measured = measure_block(list(asked.values()), beside, clock=clock, progress=progress)
    shape = parse_shape(reference.task)
    for name, cell in asked.items():
        found[name] = _with_sizes(measured[cell.id], able[name], shape, beneath)
    return found


def _able(cell: Cell) -> VariantSpec | Reason:
    """The variant with the heads of the shape, or why it is not timed."""
    shape = parse_shape(cell.task)
    spec = attempt(lambda: with_heads_of(resolve(cell.variant), shape))
    if isinstance(spec, Reason) or cell.device != "cpu":
        return spec
    dtype = getattr(torch, cell.dtype, None)
    protocol = parse_rounds(cell.protocol)
    if not isinstance(dtype, torch.dtype):
        return spec  # the block says what is wrong with it
    said = attempt(partial(too_large_slot, spec, shape, protocol, impl_of(cell.impl), dtype))
    # whatever a short call raises, the block will say
    return Reason("refused", said) if isinstance(said, str) else spec


def _with(cell: Cell, spec: VariantSpec) -> Cell:
    """The cell for `measure_block`, whose own limits are for attention beneath its heads."""
    free = replace(parse_rounds(cell.protocol), most_mb=0.0, most_s=0.0).show()
    return replace(cell, variant=spec.canonical.show(), protocol=free)


def _with_sizes(
    outcome: Outcome, spec: VariantSpec, shape: AttendShape, beneath: int | None
) -> Outcome:
    """The rows of a slot, and those of the heads that were used.

    Args:
        outcome: What was measured of the whole stack.
        spec: The variant, with the heads of the shape.
        shape: What was asked.
        beneath: Layers of the baseline; None where it was not timed.
    """
    if isinstance(outcome, Reason):
        return outcome
    dims = dims_of_slot(spec, shape)
    sizes = {
        "heads_count": dims.heads,
        "key_heads_count": dims.kv_heads,
        "key_width_count": dims.key_width,
        "value_width_count": dims.value_width,
    }
    layers = timed_layers(spec)
    if layers > 1:
        sizes["layers_count"] = layers
    x = float(shape.length)
    rows = [Row(metric=name, value=float(n), axis="length", x=x) for name, n in sizes.items()]
    own = [
        _of_a_layer(row, beneath if row.baseline else layers)
        for row in outcome.rows
        if beneath is not None or not row.baseline
    ]
    return Measured((*own, *rows), outcome.unmeasured)


def _of_a_layer(row: Row, layers: int | None) -> Row:
    """The value for one layer of a stack."""
    if not layers or layers == 1 or row.metric in OF_ANY_STACK:
        return row
    each_s = row.metric.endswith("_per_s")
    return replace(row, value=row.value * layers if each_s else row.value / layers)
