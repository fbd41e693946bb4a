"""From a cell to a timed variant: built, called once, and counted in passes that are not timed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from bench.api.axes import CHAIN_AXES
from bench.api.cell import Cell
from bench.api.impl import Impl, impl_of
from bench.api.kept_bytes import state_bytes
from bench.api.places import timed_place
from bench.api.resolve import VariantSpec, resolve
from bench.api.source import Source
from bench.api.variant import Variant
from bench.timing.affordable import too_large
from bench.timing.flops import analytic_flops, count_operations
from bench.timing.memory import peak_bytes
from bench.timing.reason import Reason, attempt, reason_for
from bench.timing.rounds import TimedVariant, main_reason
from bench.timing.shape import AttendShape, Rounds
from bench.timing.timed_dims import timed_dims
from bench.timing.timed_inputs import Inputs, fit_inputs
from bench.timing.timed_slot import layers_of
from bench.timing.timer import Work
from bench.timing.workloads import answer, build, forward, forward_backward, make_works

KEPT = "state_bytes"
"""Metric of what decoding keeps."""
HIDDEN = Reason("refused", "on a processor nothing sees the memory inside compiled code.")
"""Why compiled code has no peak memory."""
STEP_MEMORY = "decode_step_peak_memory_bytes"
"""Metric of the memory that a step of decoding needs beside what was there."""
OPERATIONS = (
    "forward_flops_counted_count",
    "forward_elementwise_count",
    "forward_transcendental_count",
)
"""Metrics of the operation counts, in the order of `Counts`."""


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
    plain: Variant | None = None
    """The same without compilation, whose operations can be seen."""
    counts: dict[str, int] = field(default_factory=dict)
    """What is measured once, by metric."""
    reads_tokens: bool = False
    """Whether a part of it looks at the ids of the source."""
    uncounted: dict[str, Reason] = field(default_factory=dict)
    """Why something that is measured once has no value, by metric."""


def enter_all(cells: Iterable[Cell], setting: Setting, reference: str) -> dict[str, Entered]:
    """Enter each cell, or let it share the timed variant that runs the very same code.

    Args:
        cells: What is timed.
        setting: What they share.
        reference: Id of the baseline's cell, without which nothing can be compared.
    """
    found: dict[str, Entered] = {}
    by_code: dict[str, Entered] = {}
    for cell in cells:
        try:
            spec = resolve(cell.variant)
        except Exception as error:  # noqa: BLE001  # whatever a variant raises, others go on
            found[cell.id] = Entered(cell.id, {}, failed=reason_for(error))
            continue
        code = attempt(partial(_code, cell, spec, setting))
        if isinstance(code, Reason):
            found[cell.id] = Entered(cell.id, {}, failed=code)
            continue
        if code not in by_code:
            by_code[code] = _enter(cell, spec, setting, compared=cell.id == reference)
        found[cell.id] = by_code[code]
    return found


def _code(cell: Cell, spec: VariantSpec, setting: Setting) -> str:
    """Equal where two variants differ only in what is not timed: maps, output, loss, decoder.

    Heads count where they share keys, for that changes what stands beneath them. A control stays
    alone, because timing the same code twice is what it is for.
    """
    if spec.registered.control:
        return cell.id
    axes = [axis for axis in CHAIN_AXES if axis in spec.axes]
    if setting.shape.place == "slot":
        axes.append("head")
    parts = ["+".join(chosen.show() for chosen in spec.axes[axis]) for axis in axes]
    parts += [] if spec.mechanism is None else [spec.mechanism.show()]
    given = timed_place(setting.shape.regime, with_heads=setting.shape.place == "slot")
    refusals = (str(spec.refusal(given)), str(spec.refusal(given | {"stepwise"})))
    sizes = repr(timed_dims(spec, setting.shape))
    return " ".join((cell.impl, sizes, *parts, *refusals))


def _enter(cell: Cell, spec: VariantSpec, setting: Setting, *, compared: bool) -> Entered:
    """Build a variant and call each of its workloads once."""
    made = attempt(partial(_built, cell, spec, setting))
    if isinstance(made, Reason):
        return Entered(cell.id, {}, failed=made)
    variant, plain = made
    refused = _too_large(plain, setting, compared=compared)
    able = tuple(one for one in setting.protocol.asked if one not in refused)
    works, lost = make_works(spec, variant, setting.inputs, able)
    lost = {**lost, **refused}
    failed = None if works else main_reason(lost.values())
    reads = any("source_tokens" in part.needs for _, part in spec.parts)
    return Entered(
        cell.id,
        works,
        lost=lost,
        failed=failed,
        variant=variant,
        plain=plain,
        reads_tokens=reads,
    )


def _built(cell: Cell, spec: VariantSpec, setting: Setting) -> tuple[Variant, Variant]:
    """A variant, and the same without compilation: where nothing is compiled it is that itself."""

    def made(impl: Impl) -> Variant:
        found = build(spec, setting.shape, impl, seed=setting.seed)
        return found.to(setting.device, setting.inputs.query.dtype)

    impl = impl_of(cell.impl)
    variant = made(impl)
    return variant, made("eager") if impl == "compiled" else variant


def _too_large(plain: Variant, setting: Setting, *, compared: bool) -> dict[str, Reason]:
    """What does not fit the limits, which are those of a CPU; operations are seen in plain code."""
    if setting.device.type != "cpu":
        return {}
    asked, dtype = setting.protocol.asked, setting.inputs.query.dtype
    limited = tuple(one for one in asked if one == "forward_weights") if compared else asked
    return too_large(plain, setting.shape, setting.protocol, dtype, among=limited)


def count(entry: Entered, setting: Setting) -> None:
    """Fill in everything that is measured once; what fails keeps its reason."""
    variant, plain = entry.variant, entry.plain
    if variant is None or plain is None or entry.failed is not None:
        return
    parameters = sum(parameter.numel() for parameter in variant.parameters())
    entry.counts["parameters_count"] = parameters
    analytic = analytic_flops(variant, setting.shape)
    if analytic is not None:
        entry.counts["forward_flops_analytic_count"] = analytic
    variant.zero_grad(set_to_none=True)
    if setting.shape.regime == "causal":
        _fill(entry, "forward", (KEPT,), lambda: {KEPT: _kept(entry, plain, setting)})
    ahead, seen = forward(variant, setting.inputs), forward(plain, setting.inputs)
    _fill(entry, "forward", OPERATIONS, lambda: _operations(seen))
    memory = "forward_peak_memory_bytes"
    # beneath heads a step holds less than its projections, and nobody decodes with it
    of_step = setting.shape.place == "slot" and "decode_step" in setting.protocol.asked
    if plain is not variant and setting.device.type == "cpu":
        hidden = (memory, "peak_memory_bytes", *((STEP_MEMORY,) if of_step else ()))
        entry.uncounted |= dict.fromkeys(hidden, HIDDEN)
        return
    _fill(entry, "forward", (memory,), lambda: {memory: peak_bytes(ahead, setting.device)})
    if of_step:
        _fill(
            entry,
            "decode_step",
            (STEP_MEMORY,),
            lambda: {STEP_MEMORY: peak_bytes(entry.works["decode_step"], setting.device)},
        )
    if "forward_backward" in setting.protocol.asked:
        both = forward_backward(variant, setting.inputs)
        memory = "peak_memory_bytes"
        _fill(
            entry, "forward_backward", (memory,), lambda: {memory: peak_bytes(both, setting.device)}
        )
        variant.zero_grad(set_to_none=True)


def _kept(entry: Entered, variant: Variant, setting: Setting) -> int:
    """Bytes that one row keeps for the next step, after all keys have come."""
    inputs = fit_inputs(setting.inputs, variant.dims)
    with torch.no_grad():
        given = inputs.source
        # ids that nobody looks at would be kept in the cache all the same
        ids = given.tokens[:1] if entry.reads_tokens and given.tokens is not None else None
        source = Source(key=given.key[:1], value=given.value[:1], tokens=ids)
        return state_bytes(layers_of(answer(variant, inputs.query[:1], source).state))


def _fill(
    entry: Entered, workload: str, metrics: Sequence[str], measure: Callable[[], dict[str, int]]
) -> None:
    """Measure once, unless the same call has failed already."""
    lost = entry.lost.get(workload)
    found = attempt(measure) if lost is None else lost
    if isinstance(found, Reason):
        entry.uncounted.update(dict.fromkeys(metrics, found))
    else:
        entry.counts.update(found)


def _operations(answer: Work) -> dict[str, int]:
    return dict(zip(OPERATIONS, count_operations(answer), strict=True))
