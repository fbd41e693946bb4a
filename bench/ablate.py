"""Ablations: one axis of a base changed at a time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from bench.api import registry
from bench.api.axes import ABSENT, BACKBONE_AXES, VARIANT_AXES
from bench.api.errors import UnknownName
from bench.api.registry import Recipe
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.running.plan import Plan, plan
from bench.running.quality_cells import PlannedCell, default_task_of, plain_task
from bench.running.request import Request
from bench.training.protocol import canonical_protocol, read_protocol
from results.catalog import ChangedAxis

R = TypeVar("R", bound=Request)


@dataclass(frozen=True)
class Ablation:
    """The base and its changed forms."""

    base: VariantSpec
    axis: str
    changed: dict[str, tuple[Selector, VariantSpec]]
    """Value on the axis to the variant that has it, as one would type it and written out."""


def ablation(base: str, axis: str) -> Ablation:
    """Every value that an axis can take, put into a base.

    Raises:
        UnknownName: No such variant or axis.
        InvalidConfig: The base has no such axis.
    """
    known = (*VARIANT_AXES, *BACKBONE_AXES)
    if axis not in known:
        raise UnknownName.among("axis", axis, known)
    spec = resolve(base)
    values = list(registry.registrations(axis))
    if axis in ABSENT:
        values.insert(0, ABSENT[axis])
    found: dict[str, tuple[Selector, VariantSpec]] = {}
    for value in values:
        asked = _changed(parse(base), spec, axis, value)
        changed = resolve(asked)
        if changed.canonical != spec.canonical:
            found[value] = (asked, changed)
    return Ablation(spec, axis, found)


def usual_folder(asked: Ablation) -> str:
    """Where an ablation goes if nobody says otherwise: a folder for each base with its options.

    What a shell or a file system could take for something else is a hyphen.
    """
    base = re.sub(r"[^A-Za-z0-9_.]+", "-", asked.base.canonical.show()).strip("-")
    return f"runs/ablate-{base}-{asked.axis}"


def _changed(base: Selector, spec: VariantSpec, axis: str, value: str) -> Selector:
    """The base with one axis set; options of what stood there before go with it."""
    target = spec.registered.target
    main = target.main if isinstance(target, Recipe) else spec.registered.axis
    axes = (*VARIANT_AXES, *BACKBONE_AXES)
    kept = {key: old for key, old in base.options.items() if key in axes or axis != main}
    return Selector(base.name, {**kept, axis: (Selector(value),)})


def planned(base: str, axis: str, request: R) -> tuple[R, Ablation, Plan]:
    """What `bench plan` shows of an ablation: the request, the changes and the cells.

    Raises:
        BenchError: A name or an option is wrong, or the base has no such axis.
    """
    request = compared_with(base, request)
    asked = ablation(base, axis)
    return request, asked, plan_ablation(request, asked, base)


def compared_with(base: str, request: R) -> R:
    """The request of an ablation: nothing is timed, and everything is compared with the base."""
    return replace(request, speed=False, baseline=base)


def plan_ablation(request: Request, asked: Ablation, base: str, jobs: int = 0) -> Plan:
    """Cells of the base and of every changed form, on the tasks asked for or the base's own.

    All are trained at the learning rate of the base, also where calibration has chosen others for
    some of them: one axis is changed, and nothing else.

    Args:
        request: What was asked for.
        asked: The changes.
        base: The variant that is changed, as typed.
        jobs: Processes that the budget counts with; 0 for those of the request.
    """
    names = ",".join([parse(base).show(), *(typed.show() for typed, _ in asked.changed.values())])
    request = replace(request, variants=names, baseline=base)
    if not request.tasks:
        default_task = default_task_of(asked.base) or plain_task()
        request = replace(
            request,
            tasks=default_task.task,
            backbone=request.backbone or default_task.backbone,
            slot=request.slot or default_task.slot,
        )
    return plan(request, jobs=jobs, trained=partial(_at_rate_of, asked.base.canonical.show()))


def _at_rate_of(base: str, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
    """The cells at the learning rate of the base on their task, in their network where it is there.

    Where `--training` says a rate, all have that already.
    """
    rates: dict[tuple[str, ...], float] = {}
    for one in cells:
        if one.cell.variant == base:
            rate = read_protocol(one.cell.protocol).lr
            rates.setdefault(_place(one), rate)
            rates.setdefault((one.cell.task,), rate)
    found = []
    for one in cells:
        own = parse(one.cell.protocol)
        given = rates.get(_place(one), rates.get((one.cell.task,)))
        shown = canonical_protocol(own if given is None else own.with_options(lr=given)).show()
        found.append(replace(one, cell=replace(one.cell, protocol=shown)))
    return found


def _place(planned: PlannedCell) -> tuple[str, ...]:
    """Where a variant is trained: on which task, in which slot of which network."""
    return (planned.cell.task, planned.cell.backbone, planned.cell.slot)


def changed_axes(asked: Ablation) -> dict[str, ChangedAxis]:
    """What the catalog says of each changed variant, by canonical selector."""
    base = asked.base.canonical.show()
    return {
        spec.canonical.show(): ChangedAxis(base=base, axis=asked.axis, value=value)
        for value, (_, spec) in asked.changed.items()
    }
