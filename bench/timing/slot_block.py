"""A block of slots: every variant with the heads of the shape, and rows that say which these are.

Stored cells of attention beneath its heads are held by a hash of the code that they reach (ADR 17).
What only slots need therefore stands in front of `measure_block`, and not inside it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bench.api.cell import Cell
from bench.api.errors import InvalidConfig, Refused
from bench.api.plain_text import message_of
from bench.api.resolve import VariantSpec, resolve
from bench.timing.block import Measured, Outcome, measure_block
from bench.timing.fitted_heads import dims_of_slot, fitted
from bench.timing.reason import Reason, attempt
from bench.timing.rounds import Progress
from bench.timing.shape import AttendShape, parse_shape
from bench.timing.timer import Clock
from results.row import Row


def measure_slots(
    cells: Sequence[Cell],
    reference: Cell,
    *,
    clock: Clock | None = None,
    progress: Progress = lambda done, planned: None,
) -> dict[str, Outcome]:
    """Time slots of one shape beside the baseline, all with the heads of the shape.

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
        Refused: The device is not there, or the baseline cannot have this shape.
        BenchError: Torch may use several threads on a CPU.
    """
    shape = parse_shape(reference.task)
    base = _fitted_spec(reference.variant, shape)
    able: dict[str, VariantSpec] = {}
    found: dict[str, Outcome] = {}
    for cell in cells:
        spec = attempt(partial(_fitted_spec, cell.variant, shape))
        if isinstance(spec, Reason):
            found[cell.id] = spec
        else:
            able[cell.id] = spec
    asked = {cell.id: _with(cell, able[cell.id]) for cell in cells if cell.id in able}
    if not asked:
        return found
    measured = measure_block(
        list(asked.values()), _with(reference, base), clock=clock, progress=progress
    )
    for name, cell in asked.items():
        found[name] = _with_sizes(measured[cell.id], able[name], shape)
    return found


def _with(cell: Cell, spec: VariantSpec) -> Cell:
    return replace(cell, variant=spec.canonical.show())


def _fitted_spec(variant: str, shape: AttendShape) -> VariantSpec:
    """The variant with the heads of the shape, which can be built.

    Raises:
        Refused: They cannot.
    """
    spec = resolve(variant)
    try:
        found = fitted(spec, shape)
        dims_of_slot(found, shape)
    except InvalidConfig as error:
        raise Refused(f"its heads cannot have this shape: {message_of(error)}") from error
    return found


def _with_sizes(outcome: Outcome, spec: VariantSpec, shape: AttendShape) -> Outcome:
    """The rows of a slot, and those of the heads that were used."""
    if isinstance(outcome, Reason):
        return outcome
    dims = dims_of_slot(spec, shape)
    sizes = {
        "heads_count": dims.heads,
        "key_heads_count": dims.kv_heads,
        "key_width_count": dims.key_width,
        "value_width_count": dims.value_width,
    }
    x = float(shape.length)
    rows = [Row(metric=name, value=float(n), axis="length", x=x) for name, n in sizes.items()]
    return Measured((*outcome.rows, *rows), outcome.unmeasured)
