"""Revisions of the code that decides the numbers of a cell."""

from dataclasses import replace

from bench.api import registry
from bench.api.axes import BACKBONE_AXES
from bench.api.backbone import BACKBONES
from bench.api.cell import Cell
from bench.api.options import canonical, complete, options_of
from bench.api.resolve import VariantSpec, canonical_backbone, resolve
from bench.api.selector import Selector, parse
from bench.api.task import TASKS
from bench.timing.shape import parse_rounds, parse_shape
from bench.training.analysis import analysis_revisions, trained_cell
from bench.training.protocol import canonical_protocol


def revisions(spec: VariantSpec, task: str, backbone: Selector) -> str:
    """`name:number` of everything whose code decides the numbers of a cell, where it is above 1."""
    used = [("task", task), ("backbone", backbone.name)]
    backbone = complete(BACKBONES, backbone)
    for axis in BACKBONE_AXES:
        for chosen in options_of(backbone.options.get(axis, ())):
            used.append((axis, chosen.name))
            if "joint" in chosen.options:
                used.append(("joint", options_of(chosen.options["joint"])[0].name))
    own = registry.show_revisions((name, registry.find(axis, name).revision) for axis, name in used)
    return " ".join(sorted({*own.split(), *spec.revision.split()}))


def canonical_cell(cell: Cell) -> Cell:
    """The cell as it is planned today: a label may say a default, or one that has changed since."""
    if cell.kind in ("analysis", "exact"):
        return cell
    cell = replace(cell, variant=resolve(cell.variant).canonical.show())
    if cell.kind == "speed":
        rounds = parse_rounds(cell.protocol)
        rounds = replace(rounds, beside=resolve(rounds.beside).canonical)
        return replace(cell, task=parse_shape(cell.task).show(), protocol=rounds.show())
    return replace(
        cell,
        task=canonical(TASKS, parse(cell.task)).show(),
        backbone=canonical_backbone(cell.backbone, {}).show(),
        protocol=canonical_protocol(cell.protocol).show(),
    )


def revisions_of(cell: Cell) -> str:
    """What `Cell.revisions` would be if the cell were planned now."""
    if cell.kind == "exact":
        return ""  # the hash of its code says more
    spec = resolve(cell.variant)
    if cell.kind == "speed":
        return spec.attention_revision
    if cell.kind == "analysis":
        return analysis_revisions(cell, revisions_of(trained_cell(cell)))
    return revisions(spec, parse(cell.task).name, parse(cell.backbone))
