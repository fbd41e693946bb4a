"""Cells that time attention without its heads, at each shape that was asked for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from bench.api import registry
from bench.api.call import REGIMES, Regime
from bench.api.cell import Cell
from bench.api.decoder import DECODERS
from bench.api.places import timed_layers, timed_place
from bench.api.resolve import VariantSpec
from bench.api.variant import MECHANISMS
from bench.running.quality_cells import PlannedCell
from bench.running.request import Request
from bench.timing.shape import AttendShape, Place, parse_rounds, parse_shape

QUADRATIC = 2.0
USUAL_S = 1.5
"""Expected time of a cell (s) where the preset times nothing by itself."""
CALLS, FLOPS_A_SECOND = 12, 4e10
"""Calls of a slot that is too slow for more, and operations of a core of the reference machine. Too
short a time would end a long block before it is done."""
GPU_S, GPU_FLOPS_A_SECOND = 5.0, 2e13
"""The same of a GPU. On an H200 a cell of a layer took 3 to 6 s at any length, of which calls are a
small part, and the slowest one did 5e13 operations a second; other cards are slower."""
COMPILED_S = 30.0
"""Expected time of compiling the calls of a cell (s)."""
Trained = Mapping[str, set[str]]
"""Regimes by variant."""
Timed = tuple[VariantSpec, list[Regime]]
"""A variant, and the regimes in which it is timed."""


def speed_cells(request: Request, trained: Iterable[PlannedCell]) -> Iterator[PlannedCell]:
    """Every variant at each shape, in the regimes in which it would be trained.

    Args:
        request: What was asked for.
        trained: Quality cells, which say in which regimes.
    """
    base = request.asked_baseline.spec.canonical.show()
    timed = _timed(request, _regimes_trained(trained))
    slots = _slots(timed, base)
    far = {name for name, (spec, _) in timed.items() if _declared_time(spec) < QUADRATIC}
    far |= {base} if far else set()
    for name, (spec, regimes) in timed.items():
        shapes = (*request.shapes, *(request.long_shapes if name in far else ()))
        for regime, shape in product(regimes, shapes):
            here = shape.place == "slot" or _can_be_timed(spec, regime, shape.place)
            if here and (shape.place != "slot" or regime in slots[name]):
                yield _speed_cell(request, spec, replace(shape, regime=regime))


def _regimes_trained(trained: Iterable[PlannedCell]) -> Trained:
    """In which regimes each variant is trained."""
    found: dict[str, set[str]] = {}
    for planned in trained:
        regime = "causal" if planned.cell.slot in ("causal", "self") else "cross"
        found.setdefault(planned.cell.variant, set()).add(regime)
    return found


def _timed(request: Request, trained: Trained) -> dict[str, Timed]:
    """What is timed, and in which regimes: those of training, or all where none is trained."""
    found: dict[str, Timed] = {}
    place = place_of(request)
    for _, spec in request.specs:
        name, possible = spec.canonical.show(), speed_regimes(spec, place)
        mine = trained.get(name, set()) & set(possible)
        found[name] = spec, [regime for regime in possible if regime in mine or not mine]
    # the baseline is timed wherever anything is, or nothing could be compared
    baseline = request.asked_baseline.spec
    everywhere = {regime for _, regimes in found.values() for regime in regimes}
    able = [regime for regime in REGIMES if _can_be_timed(baseline, regime, place)]
    found[baseline.canonical.show()] = baseline, [one for one in able if one in everywhere]
    return found


def _slots(timed: Mapping[str, Timed], base: str) -> dict[str, list[Regime]]:
    """Regimes in which whole slots are timed; the baseline's are those of all others."""
    found = {name: _slot_regimes(regimes) for name, (_, regimes) in timed.items() if name != base}
    beside = {one for regimes in found.values() for one in regimes}
    _, own = timed[base]
    found[base] = [one for one in own if one in beside] or _slot_regimes(own)
    return found


def place_of(request: Request) -> Place:
    """The place that offers most, of the shapes that are asked for."""
    slots = any(shape.place == "slot" for shape in (*request.shapes, *request.long_shapes))
    return "slot" if slots else "attention"


def _slot_regimes(regimes: list[Regime]) -> list[Regime]:
    """Prompts are read and continued under causal self-attention, by whoever can stand there."""
    return ["causal"] if "causal" in regimes else regimes


def _declared_time(spec: VariantSpec) -> float:
    """Power of the length in the time of a mechanism; chains know theirs only once they stand."""
    if spec.mechanism is None:
        return QUADRATIC
    return registry.find(MECHANISMS, spec.mechanism.name).target.time_exponent


def _speed_cell(request: Request, spec: VariantSpec, shape: AttendShape) -> PlannedCell:
    cell = Cell(
        kind="speed",
        task=shape.show(),
        backbone="none",
        variant=spec.canonical.show(),
        slot=shape.regime,
        protocol=request.rounds_of(shape).show(),
        impl=request.impl,
        dtype=request.dtype,
        device=request.device,
        seed=request.first_seed,
        revisions=spec.attention_revision,
    )
    size = request.size
    if shape.place == "slot" or request.shape:
        seconds = _typed_seconds(spec, shape, request.device, request.rounds_of(shape).most_s)
    else:
        seconds = size.speed_s / len(size.lengths) if size.lengths else USUAL_S
    if request.impl == "compiled":
        seconds += COMPILED_S
    return PlannedCell(cell, seconds, spec)


def timed_alone_s(cell: Cell, spec: VariantSpec) -> float:
    """Expected time (s) of a cell that is named by its label, as at a shape of the command."""
    most_s = parse_rounds(cell.protocol).most_s
    seconds = _typed_seconds(spec, parse_shape(cell.task), cell.device, most_s)
    return seconds + (COMPILED_S if cell.impl == "compiled" else 0.0)


def _typed_seconds(spec: VariantSpec, shape: AttendShape, device: str, most_s: float) -> float:
    """Expected time (s) at a shape of the command: attention between all pairs, and projections."""
    width, length = shape.heads * shape.width, shape.length
    flops = 8 * width**2 * length if shape.place == "slot" else 0
    if _declared_time(spec) >= QUADRATIC:
        flops += 4 * width * length**2
    flops *= shape.batch * timed_layers(spec)
    if device != "cpu":
        return GPU_S + CALLS * flops / GPU_FLOPS_A_SECOND
    call = flops / FLOPS_A_SECOND
    refused = most_s and call > most_s
    return USUAL_S + (0.0 if refused else CALLS * call)


def speed_regimes(spec: VariantSpec, place: Place = "attention") -> list[Regime]:
    """Where a variant's attention is timed: cross, causal or both; else where it is possible."""
    decoder = spec.fixes.get("decoder")
    if decoder is not None and not registry.find(DECODERS, decoder.name).target.attends:
        return []
    possible = [regime for regime in REGIMES if _can_be_timed(spec, regime, place)]
    usual: list[Regime] = [regime for regime in possible if regime in ("cross", "causal")]
    return usual or possible[:1]


def _can_be_timed(spec: VariantSpec, regime: Regime, place: Place) -> bool:
    return spec.refusal(timed_place(regime, with_heads=place == "slot")) is None
