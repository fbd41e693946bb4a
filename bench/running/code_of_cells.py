"""Which code decides the numbers of a cell, and whether it is still the code of today."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import FunctionType

from bench.api import registry
from bench.api.axes import BACKBONE_AXES
from bench.api.backbone import BACKBONES
from bench.api.cell import Cell
from bench.api.chain import Chain
from bench.api.errors import BenchError
from bench.api.options import complete, inner
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.conformance import certify, certify_on
from bench.running.source_code import Root, loaded_source
from bench.timing.block import measure_block
from bench.timing.fitted_heads import fitted
from bench.timing.shape import AttendShape, Place, parse_shape
from bench.timing.slot_block import measure_slots
from bench.training.analysis import analysis_probe, analyze_cell
from bench.training.quality import train_cell

ENTRIES: Mapping[str, tuple[Root, ...]] = {
    "quality": (train_cell,),
    "trial": (train_cell,),
    "analysis": (train_cell, analyze_cell),
    "speed": (measure_block,),
}
"""What computes the cells of each kind; slots are timed by more, see `_entries`."""
Part = tuple[str, str]
"""Axis and name of something that is registered."""


class CodeOfCells:
    """Hashes of the code of cells, for the code that this process has loaded."""

    def __init__(self) -> None:
        self.source = loaded_source()
        self._known: dict[tuple[object, ...], str] = {}

    def of_certificate(self, variant: str) -> str:
        """Hash of the code that a certificate of a variant is about, the checks among it."""
        spec = resolve(variant)
        named = _axes(spec)
        # a certificate holds below every head that a network may choose
        heads = {("head", name) for name in registry.registrations("head")}
        roots: list[Root] = [certify, certify_on, *_targets(_parts(named) | heads)]
        told = [f"title={spec.registered.title}", f"shown by={spec.registered.default_task}"]
        settings = [*(f"{axis}={one}" for axis, one in named), *told]
        return self.source.digest([*roots, *_options_of_its_task(spec)], settings)

    def digest(self, cell: Cell, made: Iterable[str] = ()) -> str:
        """Hash of the code of a cell; empty where a name of it is no longer registered.

        Args:
            cell: The cell.
            made: `axis:name` of what was built when it ran. A network chooses some parts by
                name while it is built, so the cell alone does not name all.
        """
        try:
            settings, parts = _named(cell)
            parts |= {(axis, name) for axis, _, name in (one.partition(":") for one in made)}
            key = (cell.kind, *settings, *sorted(parts))
            if key not in self._known:
                roots = [*_entries(cell), *_targets(parts)]
                self._known[key] = self.source.digest(roots, settings)
            return self._known[key]
        except BenchError:
            return ""


def timed_parts(variant: str) -> set[Part]:
    """The registered parts of a variant that speed cells time."""
    return _parts(_timed(resolve(variant)))


def _entries(cell: Cell) -> tuple[Root, ...]:
    slot = cell.kind == "speed" and parse_shape(cell.task).place == "slot"
    return (measure_slots,) if slot else ENTRIES[cell.kind]


def _named(cell: Cell) -> tuple[tuple[str, ...], set[Part]]:
    """Everything a cell names, written out, and the registered parts among it."""
    spec = resolve(cell.variant)
    if cell.kind == "speed":
        timed = _timed_at(spec, parse_shape(cell.task))
        return tuple(f"{axis}={one}" for axis, one in timed), _parts(timed)
    task = ("task", complete("task", parse(cell.task)))
    backbone = ("backbone", complete(BACKBONES, parse(cell.backbone)))
    fixed = [(axis, one) for axis, one in spec.fixes.items() if axis in BACKBONE_AXES]
    probe = [("probe", analysis_probe(cell))] if cell.kind == "analysis" else []
    chosen = [task, backbone, *_axes(spec), *fixed, *probe]
    return tuple(f"{axis}={one}" for axis, one in chosen), _parts(chosen)


def _timed_at(spec: VariantSpec, shape: AttendShape) -> list[tuple[str, Selector]]:
    # a slot has the heads of its shape, with the widths that follow them
    return _timed(fitted(spec, shape) if shape.place == "slot" else spec, shape.place)


def _timed(spec: VariantSpec, place: Place = "attention") -> list[tuple[str, Selector]]:
    without = {"output", "loss", *(("head",) if place == "attention" else ())}
    return [part for part in _axes(spec) if part[0] not in without]


def _axes(spec: VariantSpec) -> list[tuple[str, Selector]]:
    own = [("mechanism", spec.mechanism)] if spec.mechanism is not None else []
    stands = [(axis, one) for axis, many in spec.axes.items() for one in many]
    return [*own, *((axis, one) for axis, one in stands if one.name != "auto")]


def _options_of_its_task(spec: VariantSpec) -> list[Root]:
    """Classes of the options that the check `config` gives to the default task and its network."""
    declared = spec.registered.default_task
    if declared is None:
        return []
    found: list[Root] = []
    for axis, text in (("task", declared.task), (BACKBONES, declared.backbone)):
        with suppress(BenchError):  # the check is red where there is no such name
            found += [registry.find(axis, parse(text).name).config] if text else []
    return found


def _parts(chosen: Sequence[tuple[str, Selector]]) -> set[Part]:
    found = {(axis, one.name) for axis, one in chosen}
    return found | {(a, s.name) for axis, one in chosen for a, s in inner(axis, one)}


def _targets(parts: Iterable[Part]) -> Iterable[Root]:
    for axis, name in sorted(parts):
        found = registry.find(axis, name)
        if isinstance(found.target, type | FunctionType):
            yield found.target
            yield found.config
    yield Chain
