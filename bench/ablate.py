"""Ablations: one axis of a base changed at a time."""

from dataclasses import dataclass, replace

from bench.api import registry
from bench.api.errors import BenchError, UnknownName
from bench.api.registry import ABSENT, BACKBONE_AXES, VARIANT_AXES
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.plan import Plan, Request, plan


@dataclass(frozen=True)
class Ablation:
    """The base and its changed forms."""

    base: VariantSpec
    axis: str
    changed: dict[str, VariantSpec]
    """Value on the axis to the variant that has it."""


def ablation(base: str, axis: str) -> Ablation:
    """Every value that an axis can take, put into a base.

    Raises:
        UnknownName: No such variant or axis.
    """
    known = (*VARIANT_AXES, *BACKBONE_AXES)
    if axis not in known:
        raise UnknownName.among("axis", axis, known)
    spec = resolve(base)
    values = list(registry.entries(axis))
    if axis in ABSENT:
        values.insert(0, ABSENT[axis])
    found: dict[str, VariantSpec] = {}
    for value in values:
        try:
            changed = resolve(parse(base).with_options(**{axis: (Selector(value),)}))
        except BenchError:
            continue
        if changed.canonical != spec.canonical:
            found[value] = changed
    return Ablation(spec, axis, found)


def plan_ablation(request: Request, asked: Ablation, base: str) -> Plan:
    """Cells of the base and of every changed form, on the base's home or the tasks asked for."""
    variants = [parse(base).with_options(**{asked.axis: (Selector(v),)}) for v in asked.changed]
    home = asked.base.entry.home
    tasks = request.tasks or (home.task if home else "transduction[rule=reverse]")
    names = ",".join([parse(base).show(), *(variant.show() for variant in variants)])
    return plan(replace(request, variants=names, tasks=tasks, baseline=base))


def ablation_facts(asked: Ablation) -> dict[str, dict[str, str]]:
    """What the catalog says of each changed variant, by canonical selector."""
    base = asked.base.canonical.show()
    return {
        spec.canonical.show(): {"base": base, "axis": asked.axis, "value": value}
        for value, spec in asked.changed.items()
    }
