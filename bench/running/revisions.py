"""Revisions of the code that decides the numbers of a cell."""

from bench.api import registry
from bench.api.cell import Cell
from bench.api.registry import BACKBONE_AXES
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.training.analysis import revisions_of_look, trained_cell


def revisions(spec: VariantSpec, task: str, backbone: Selector) -> str:
    """`name:number` of everything whose code decides the numbers of a cell."""
    used = [("task", task), ("backbone", backbone.name)]
    for axis in BACKBONE_AXES:
        for chosen in registry.options_of(backbone.options.get(axis, ())):
            used.append((axis, chosen.name))
            if "joint" in chosen.options:
                used.append(("joint", registry.options_of(chosen.options["joint"])[0].name))
    own = [f"{name}:{registry.find(axis, name).revision}" for axis, name in used]
    return " ".join(sorted({*own, *spec.revision.split()}))


def revisions_of(cell: Cell) -> str:
    """What `Cell.revisions` would be if the cell were planned now."""
    spec = resolve(cell.variant)
    if cell.kind == "speed":
        return spec.revision
    if cell.kind == "analysis":
        return revisions_of_look(cell, revisions_of(trained_cell(cell)))
    return revisions(spec, parse(cell.task).name, parse(cell.backbone))
