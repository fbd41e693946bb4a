"""From a request to cells: pure, without clock, device or disk."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.api.cell import Cell
from bench.api.places import timed_layers
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector
from bench.running.comparison_cells import in_comparisons, without_comparison
from bench.running.left_out import (
    LeftOut,
    no_time_to_time,
    no_time_to_train,
    without_comparers,
    without_data,
    without_default_task,
    without_timing,
)
from bench.running.quality_cells import (
    PlannedCell,
    default_task_of,
    on_asked_tasks,
    on_default_tasks,
    plain_task,
    uniform_baselines,
)
from bench.running.request import AskedVariant, Request
from bench.running.speed_cells import place_of, speed_cells, speed_regimes

Trained = Callable[[Sequence[PlannedCell]], Sequence[PlannedCell]]
"""From the cells that would be trained, in order, to those that take their places."""
SPEED_SHARE = 0.45
"""Most of a budget that timing may take where there is training too."""
OTHERWISE = 1 / 12
"""Share of a budget for certificates, start-up and the report."""


@dataclass
class Plan:
    """Cells in the order in which they should run."""

    request: Request
    quality: list[PlannedCell] = field(default_factory=list)
    speed: list[PlannedCell] = field(default_factory=list)
    analysis: list[Cell] = field(default_factory=list)
    """Probes of models that the quality cells leave."""
    left_out: list[LeftOut] = field(default_factory=list)
    room_s: float = math.inf
    """CPU seconds that the budget has for training, those of the cells included."""
    jobs: int = 0
    """Processes that the budget counts with; 0 where there is none."""
    variants: dict[str, AskedVariant] = field(default_factory=dict)
    """Every variant by its canonical selector, with the text that asked for it."""

    @property
    def baseline(self) -> VariantSpec:
        """The variant that all others are compared with."""
        return self.request.asked_baseline.spec

    def add(self, variants: Iterable[AskedVariant]) -> None:
        """Name variants; the text that asked first stays."""
        for one in variants:
            self.variants.setdefault(one.spec.canonical.show(), one)

    @property
    def cells(self) -> list[Cell]:
        """Every cell."""
        trained_or_timed = [planned.cell for planned in (*self.quality, *self.speed)]
        return [*trained_or_timed, *self.analysis]

    @property
    def seconds(self) -> float:
        """Expected wall time (s): training on all jobs, timing alone."""
        training = sum(planned.seconds for planned in self.quality) / self.request.jobs
        return training + sum(planned.seconds for planned in self.speed)


def plan(
    request: Request,
    missing: Mapping[str, str] | None = None,
    jobs: int = 0,
    trained: Trained = list,
) -> Plan:
    """Turn a request into cells.

    Args:
        request: What was asked for.
        missing: Tasks whose comparisons are left out, for their data are not there, and why not.
        jobs: Processes that the budget counts with, where it was planned for others before; 0 for
            those of the request.
        trained: Changes what would be trained, before the budget is filled.

    Raises:
        UnknownName: A variant, task, backbone or preset that nobody registered.
        InvalidConfig: An option with a wrong name or value.
    """
    made = Plan(request)
    made.add((*request.specs, request.asked_baseline))
    wanted = [*_unique(_wanted(made, missing or {}))] if request.quality else []
    wanted = [*trained(wanted)]
    seconds = _seconds_to_fill(request)
    if request.speed and request.shapes:
        _add_speed(made, wanted, SPEED_SHARE * seconds if request.quality else seconds)
    timing = sum(planned.seconds for planned in made.speed)
    made.jobs = jobs or request.jobs
    made.room_s = max(0.0, seconds - timing) * made.jobs
    _fill(made, wanted)
    return made


def _wanted(made: Plan, missing: Mapping[str, str]) -> Iterator[PlannedCell]:
    """Cells that would be trained if there were no budget, in order of importance."""
    request = made.request
    if request.tasks and not request.size.comparisons:
        yield from on_asked_tasks(request)
        return
    uniform = [AskedVariant(name, resolve(Selector(name))) for name in uniform_baselines()]
    controls = [*uniform, request.asked_baseline]
    made.add(controls)
    if request.size.comparisons:
        cells = in_comparisons(request, controls, made.variants)
        yield from (one for one in cells if one.task and one.task.selector.name not in missing)
        made.left_out += [without_data(request, name, why) for name, why in missing.items()]
        made.left_out += [
            without_comparers(request, text, (default_task_of(spec) or plain_task()).task)
            for text, spec in without_comparison(request)
        ]
        return
    yield from on_default_tasks(request, controls)
    made.left_out += [
        without_default_task(request, text, plain_task().task)
        for text, spec in request.specs
        if default_task_of(spec) is None
    ]


def _seconds_to_fill(request: Request) -> float:
    """Wall time for training and timing (s); infinite where nothing limits it."""
    if request.budget_s == 0 or (request.tasks and not request.minutes):
        return float("inf")
    return request.budget_s * (1 - OTHERWISE)


def _fill(made: Plan, wanted: Sequence[PlannedCell]) -> None:
    """Take cells in order while they fit; list the rest with its command.

    Seeds that were asked for are all taken, unless minutes were asked for, too; those that looks
    add have what is left of the budget.
    """
    asked_for = made.request.seeds and not made.request.minutes
    room_s = math.inf if asked_for else made.room_s
    spent = 0.0
    for planned in wanted:
        spent += planned.seconds
        if spent <= room_s:
            asked = made.variants.get(planned.cell.variant)
            made.quality.append(replace(planned, shown_variant=asked.text if asked else ""))
        else:
            made.left_out.append(no_time_to_train(made.request, planned.cell))


def _add_speed(made: Plan, trained: Iterable[PlannedCell], seconds: float) -> None:
    """Keep timing within its share: variants in order while they fit, the baseline in any case."""
    made.left_out += [
        without_timing(
            made.request,
            made.variants[spec.canonical.show()].text,
            stacked=timed_layers(spec) > 1,
        )
        for _, spec in made.request.specs
        if not speed_regimes(spec, place_of(made.request))
    ]
    wanted: dict[str, list[PlannedCell]] = {}
    for planned in speed_cells(made.request, trained):
        wanted.setdefault(planned.cell.variant, []).append(planned)
    kept, spent = set[str](), 0.0
    baseline = made.baseline.canonical.show()
    for variant in sorted(wanted, key=lambda name: name != baseline):
        mine = sum(one.seconds for one in wanted[variant])
        if variant == baseline or spent + mine <= seconds:
            kept.add(variant)
            spent += mine
        else:
            made.left_out.append(no_time_to_time(made.request, made.variants[variant].text))
    made.speed = [one for variant, cells in wanted.items() if variant in kept for one in cells]


def _unique(planned: Iterable[PlannedCell]) -> Iterator[PlannedCell]:
    seen: set[str] = set()
    for one in planned:
        if one.cell.id not in seen:
            seen.add(one.cell.id)
            yield one
