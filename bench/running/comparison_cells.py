"""Cells of a preset of comparisons: what each task compares, beside controls and the baseline."""

from collections.abc import Iterator, Sequence

from bench.api import registry
from bench.api.comparison import Entry
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import Selector
from bench.api.task import TASKS
from bench.running.families import compared_tasks
from bench.running.quality_cells import (
    PlannedCell,
    quality_cell,
    seed_by_seed,
    uniform_baselines,
)
from bench.running.request import AskedVariant, Request


def in_comparisons(
    request: Request, controls: Sequence[AskedVariant], variants: dict[str, AskedVariant]
) -> Iterator[PlannedCell]:
    """Seed by seed, each task's comparison: controls and baseline, then those that were asked for.

    Every family has its first member run at all seeds before any has its second. A named variant
    that no named task compares runs beside the controls of each of these tasks.

    Args:
        request: What was asked for.
        controls: Controls and baseline.
        variants: Every variant by its canonical selector; what the tasks propose is added.
    """
    asked = {spec.canonical.show() for _, spec in (*request.specs, *controls)}
    if request.tasks and not request.every_variant:
        known = {one.spec.canonical.show() for one in controls}
        for task in request.task_selectors:
            known |= _proposed_names(request, task)
        more = [one for one in request.specs if one.spec.canonical.show() not in known]
        controls = [*controls, *more]
    for group in task_groups(request):
        cells = [
            one for task in group for one in _compared(request, task, controls, asked, variants)
        ]
        yield from seed_by_seed(request, cells)


def task_groups(request: Request) -> list[list[Selector]]:
    """Tasks of a preset of comparisons: those asked for, or those that compare what was named.

    Where nothing but controls and the baseline was named, every task is there.
    """
    if request.tasks:
        return [[*request.task_selectors]]
    groups = compared_tasks(request.sizes)
    wanted = {spec.canonical.show() for _, spec in named_contenders(request)}
    if not wanted:
        return groups
    chosen = [[t for t in group if wanted & _proposed_names(request, t)] for group in groups]
    return [group for group in chosen if group]


def named_contenders(request: Request) -> list[AskedVariant]:
    """Variants that were asked for by name, without controls and the baseline."""
    if request.every_variant:
        return []
    beside = {*uniform_baselines(), request.asked_baseline.spec.canonical.show()}
    return [one for one in request.specs if one.spec.canonical.show() not in beside]


def without_comparison(request: Request) -> list[AskedVariant]:
    """Variants that were asked for by name, and that no task of the preset compares."""
    if request.tasks or not request.size.comparisons:
        return []
    groups = task_groups(request)
    compared = {name for group in groups for t in group for name in _proposed_names(request, t)}
    return [one for one in named_contenders(request) if one.spec.canonical.show() not in compared]


def _compared(
    request: Request,
    task: Selector,
    controls: Sequence[AskedVariant],
    asked: set[str],
    variants: dict[str, AskedVariant],
) -> list[PlannedCell]:
    """What a task compares; where variants were named, only networks that hold one of them."""
    own = [(Entry(variant=one.text), one) for one in controls]
    found = []
    for entry, one in (*own, *_proposed(request, task)):
        canonical = one.spec.canonical.show()
        if request.every_variant or canonical in asked:
            variants.setdefault(canonical, one)
            place = DefaultTask(
                task=entry.task or task.show(), backbone=entry.backbone, slot=entry.slot
            )
            found.append(quality_cell(request, one.spec, place))
    wanted = {spec.canonical.show() for _, spec in named_contenders(request)}
    places = {_place(one) for one in found if one.cell.variant in wanted}
    return [one for one in found if _place(one) in places or not wanted]


def _place(planned: PlannedCell) -> tuple[str, str, str]:
    return planned.cell.task, planned.cell.backbone, planned.cell.slot


def _proposed(request: Request, task: Selector) -> list[tuple[Entry, AskedVariant]]:
    """What a task compares at the sizes of a run."""
    entries = registry.find(TASKS, task.name).target.compared_at(request.sizes)
    return [(entry, _asked(entry)) for entry in entries]


def _proposed_names(request: Request, task: Selector) -> set[str]:
    return {one.spec.canonical.show() for _, one in _proposed(request, task)}


def _asked(entry: Entry) -> AskedVariant:
    return AskedVariant(entry.selector.show(), resolve(entry.selector))
