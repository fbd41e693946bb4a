"""From a cell to a timed variant: built, called once, and counted in passes that are not timed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from bench.api.axes import CHAIN_AXES
from bench.api.cell import Cell
from bench.api.places import timed_place
from bench.api.resolve import VariantSpec, resolve
from bench.api.variant import Variant, impl_of
from bench.timing.flops import analytic_flops, count_operations
from bench.timing.memory import peak_bytes
from bench.timing.reason import reason_for
from bench.timing.rounds import TimedVariant
from bench.timing.shape import AttendShape, Rounds
from bench.timing.workloads import Inputs, build, forward, forward_backward, make_works


@dataclass(frozen=True)
class Setting:
    """What all cells of a block share."""

    shape: AttendShape
    protocol: Rounds
    inputs: Inputs
    device: torch.device
    seed: int


@dataclass
class Entered(TimedVariant):
    """A timed variant with the variant behind it."""

    variant: Variant | None = None
    counts: dict[str, int] = field(default_factory=dict)
    """What is measured once, by metric."""


def enter_all(cells: Iterable[Cell], setting: Setting) -> dict[str, Entered]:
    """Enter each cell, or let it share the timed variant that runs the very same code."""
    found: dict[str, Entered] = {}
    by_code: dict[str, Entered] = {}
    for cell in cells:
        try:
            spec = resolve(cell.variant)
        except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
            found[cell.id] = Entered(cell.id, {}, failed=reason_for(error))
            continue
        code = _code(cell, spec, setting)
        if code not in by_code:
            by_code[code] = _enter(cell, spec, setting)
        found[cell.id] = by_code[code]
    return found


def _code(cell: Cell, spec: VariantSpec, setting: Setting) -> str:
    """Equal where two variants differ only in what is not timed: heads, output, loss, decoder.

    A control stays alone, because timing the same code twice is what it is for.
    """
    if spec.registered.control:
        return cell.id
    chain = ("+".join(chosen.show() for chosen in spec.axes[axis]) for axis in CHAIN_AXES)
    parts = chain if spec.mechanism is None else (spec.mechanism.show(),)
    given = timed_place(setting.shape.regime)
    refusals = (str(spec.refusal(given)), str(spec.refusal(given | {"stepwise"})))
    return " ".join((cell.impl, *parts, *refusals))


def _enter(cell: Cell, spec: VariantSpec, setting: Setting) -> Entered:
    """Build a variant and call each of its workloads once."""
    try:
        variant = build(spec, setting.shape, impl_of(cell.impl), seed=setting.seed)
        variant.to(setting.device, setting.inputs.query.dtype)
        works = make_works(spec, variant, setting.inputs, setting.protocol.asked)
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        return Entered(cell.id, {}, failed=reason_for(error))
    return Entered(cell.id, works, variant=variant)


def count(entry: Entered, setting: Setting) -> None:
    """Fill in everything that is measured once."""
    variant = entry.variant
    if variant is None or entry.failed is not None:
        return
    answer = forward(variant, setting.inputs)
    variant.zero_grad(set_to_none=True)
    try:
        operations = count_operations(answer)
        entry.counts = {
            "parameters_count": sum(parameter.numel() for parameter in variant.parameters()),
            "forward_flops_counted_count": operations.matmul_flops,
            "forward_elementwise_count": operations.elementwise,
            "forward_transcendental_count": operations.transcendental,
            "forward_peak_memory_bytes": peak_bytes(answer, setting.device),
        }
        analytic = analytic_flops(variant, setting.shape)
        if analytic is not None:
            entry.counts["forward_flops_analytic_count"] = analytic
        if "forward_backward" in entry.works:
            both = forward_backward(variant, setting.inputs)
            entry.counts["peak_memory_bytes"] = peak_bytes(both, setting.device)
            variant.zero_grad(set_to_none=True)
    except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
        entry.failed = reason_for(error)
