"""Cells that train: default tasks with controls, the preset's shared tasks, and comparisons."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bench.api import registry
from bench.api.axes import PLAIN
from bench.api.backbone import BACKBONES
from bench.api.calibration import competitor
from bench.api.call import regime_of
from bench.api.cell import Cell
from bench.api.errors import InvalidConfig, Refused, UnknownName
from bench.api.options import canonical
from bench.api.registry import DefaultTask
from bench.api.resolve import VariantSpec, canonical_backbone, resolve
from bench.api.selector import Selector, parse
from bench.api.task import TASKS, TaskPreset
from bench.running.calibrated import calibrated_choice
from bench.running.presets import find_preset, sizes_of
from bench.running.request import CHECK_SEEDS, AskedTask, AskedVariant, Request
from bench.running.revisions import revisions
from bench.training.protocol import canonical_protocol, read_protocol
from bench.training.refusals import cell_refusal

UNKNOWN_S = 60.0
"""Expected of a cell of a task that has no sizes (s)."""
REFUSED_S = 0.1
"""Expected of a cell that is refused before anything is built (s)."""


@dataclass(frozen=True)
class PlannedCell:
    """A cell, and what the planner expects of it."""

    cell: Cell
    seconds: float
    """CPU seconds on the reference machine."""
    spec: VariantSpec
    """The variant, resolved."""
    task: AskedTask | None = None
    """The task that is trained; None where a variant is timed."""
    shown_variant: str = ""
    """The variant as it was asked for."""
    seeds: int = 0
    """With how many of the seeds of a run it is trained, the first ones; 0 for all."""
    refused: str = ""
    """Why it will be refused, as far as that is known before anything is built; empty otherwise."""

    def at(self, seed: int) -> "PlannedCell":
        """The same question under another seed."""
        return replace(self, cell=replace(self.cell, seed=seed))


def on_asked_tasks(request: Request) -> Iterator[PlannedCell]:
    """The baseline and every variant on every task that was asked for, seed by seed.

    The baseline comes first, for without it a budget that ends early would leave nothing compared.
    """
    specs = [request.asked_baseline.spec, *(spec for _, spec in request.specs)]
    asked = [
        quality_cell(request, spec, DefaultTask(task=task.show()))
        for task in request.task_selectors
        for spec in specs
    ]
    return (one.at(seed) for seed in request.paired_seeds for one in asked)


def on_default_tasks(request: Request, controls: Sequence[AskedVariant]) -> Iterator[PlannedCell]:
    """Cells in order of importance: default tasks after their controls, then shared tasks."""
    own: list[PlannedCell] = []
    controlled: set[DefaultTask] = set()
    for _, spec in request.specs:
        default_task = default_task_of(spec)
        if default_task is None:
            continue
        mine = quality_cell(request, spec, default_task)
        if default_task not in controlled:
            controlled.add(default_task)
            planned = [quality_cell(request, control, default_task) for _, control in controls]
            least = mine.seconds if _in_another_backbone(request, default_task) else 0.0
            own += [replace(one, seconds=max(one.seconds, least)) for one in planned]
        own.append(mine)
    asked = dict(request.specs)
    roster = [asked[name] for name in roster_of(request.preset) if name in asked]
    if roster:  # what they are compared with stands there, too, whoever was asked
        held = {spec.canonical.show() for spec in roster}
        beside = [spec for _, spec in controls if spec.canonical.show() not in held]
        roster = [*reversed(beside), *roster]
    shared = [
        quality_cell(request, spec, DefaultTask(task=task))
        for task in shared_tasks(request.preset)
        for spec in roster
    ]
    for cells in (own, shared):
        yield from seed_by_seed(request, cells)


def _in_another_backbone(request: Request, default_task: DefaultTask) -> bool:
    """Whether a backbone that the task is not sized for holds all variants of a default task.

    It may cost more than the task's own, for every variant.
    """
    asked = default_task.backbone_selector
    if asked is None or request.backbone_selector is not None:
        return False
    size = sized_task(default_task.selector, request.preset, calibrated=request.calibrated)[1]
    return canonical_backbone(asked, {}) != canonical_backbone(size.backbone_selector, {})


def seed_by_seed(request: Request, cells: Sequence[PlannedCell]) -> Iterator[PlannedCell]:
    """All cells of the first seed, then those of the next; what has fewer seeds ends first."""
    for number, seed in enumerate(request.paired_seeds):
        for one in cells:
            if number < one.seeds or not one.seeds:
                yield one.at(seed)


def uniform_baselines() -> list[str]:
    """Controls that run on every default task, so that learning has something to beat."""
    listed = registry.listed_variants()
    return [name for name, registered in listed.items() if registered.control == "uniform_baseline"]


def roster_of(preset: str) -> list[str]:
    """Variants that run on the shared tasks of a preset, plain attention first."""
    listed = registry.listed_variants()
    mine = [name for name, registered in listed.items() if preset in registered.rosters]
    return sorted(mine, key=lambda name: name != PLAIN)


def shared_tasks(preset: str) -> list[str]:
    """Tasks on which the whole roster of a preset runs, in addition to the default tasks."""
    return [
        name
        for name, registered in registry.registrations(TASKS).items()
        if preset in registered.target.presets and registered.target.presets[preset].shared
    ]


def fewest_seeds(preset: str) -> int:
    """Seeds that every size of a preset has, pipeline checks apart."""
    name, targets = sizes_of(preset), registry.registrations(TASKS).values()
    sizes = [one.target.presets[name] for one in targets if name in one.target.presets]
    return min([find_preset(preset).seeds, *(size.seeds for size in sizes if size.seeds)])


def plain_task() -> DefaultTask:
    """Where a combination without a default task of its own is shown: that of plain attention."""
    default_task = resolve(PLAIN).registered.default_task
    assert default_task is not None, "plain attention has a default task"
    return default_task


def default_task_of(spec: VariantSpec) -> DefaultTask | None:
    """Where a variant is trained if nobody says otherwise; None where no task here shows it yet."""
    default_task = spec.registered.default_task or plain_task()
    return default_task if default_task.task else None


def quality_cell(
    request: Request, spec: VariantSpec, default_task: DefaultTask, seed: int = 0
) -> PlannedCell:
    """One cell of a variant on a task, at the preset's size.

    A backbone that cannot hold the variant still makes a cell: its row says why not.

    Raises:
        UnknownName: The backbone has no such slot, or a name is registered nowhere.
        InvalidConfig: The task has no sizes for the preset, or an option is wrong.
    """
    task, size, shown = sized_task(
        default_task.selector, request.preset, calibrated=request.calibrated
    )
    asked = request.backbone_selector or default_task.backbone_selector or size.backbone_selector
    try:
        backbone = canonical_backbone(asked, spec.fixes)
    except Refused:
        backbone = canonical_backbone(asked, {})
    network = registry.find(BACKBONES, backbone.name).target
    slot = request.slot or default_task.slot or network.slots[0]
    if slot not in network.slots:
        raise UnknownName.among(f"slot of {backbone.name}", slot, network.slots)
    place = competitor(spec.canonical.show(), backbone.show(), slot)
    protocol = _protocol(request, size, _rate(request, default_task.selector, place))
    cell = Cell(
        kind="quality",
        task=task.show(),
        backbone=backbone.show(),
        variant=spec.canonical.show(),
        slot=slot,
        protocol=canonical_protocol(protocol).show(),
        impl=request.impl,
        dtype=request.dtype,
        device=request.device,
        seed=seed,
        revisions=revisions(spec, task.name, backbone),
    )
    target = registry.find(TASKS, task.name).target
    check = bool(target.pipeline_check_at(request.sizes, backbone.name))
    # what was asked for holds for every task
    seeds = 0 if request.seeds else CHECK_SEEDS if check else size.seeds
    regime = network.regimes.get(slot) or regime_of(slot)
    refused = cell_refusal(spec, target, backbone, regime) or ""
    seconds = REFUSED_S if refused else _expected(size, protocol, spec)
    return PlannedCell(cell, seconds, spec, AskedTask(shown, task), seeds=seeds, refused=refused)


def _rate(request: Request, asked: Selector, place: str) -> float | None:
    """The learning rate that calibration has chosen for a variant in its place, if it did."""
    choice = calibrated_choice(asked, request.sizes) if request.calibrated else None
    return choice.rate(place) if choice else None


def _protocol(request: Request, size: TaskPreset, rate: float | None) -> Selector:
    """The task's training protocol with the rate of a variant and what was asked for."""
    usual = size.protocol_selector
    if rate is not None:
        usual = usual.with_options(lr=rate)
    asked = request.protocol_selector
    if asked is None:
        return usual
    if asked.name != usual.name:
        raise UnknownName.among("training protocol", asked.name, [usual.name])
    return usual.with_options(**asked.options)


def _expected(size: TaskPreset, protocol: Selector, spec: VariantSpec) -> float:
    """Scale the task's own figure by the steps and the batch asked for and the variant's cost."""
    usual, asked = read_protocol(size.protocol_selector), read_protocol(protocol)
    mine = size.seconds * spec.registered.cost
    if asked.cpu_seconds and usual.cpu_seconds:
        return mine * min(asked.cpu_seconds / usual.cpu_seconds, 100.0)
    # a step of a smaller batch takes hardly less time
    share = asked.steps / usual.steps * max(1.0, asked.batch / usual.batch)
    if asked.cpu_seconds:
        return min(mine * share, asked.cpu_seconds)
    return mine * min(share, 100.0)


def expected_of_label(cell: Cell, spec: VariantSpec, preset: str) -> float:
    """What the planner expects of a cell that is named by its label (CPU s).

    A label does not say the preset: it is one at whose size the task is, first the one that was
    asked for. Where there is none, the longest figure counts.

    Args:
        cell: A trained cell.
        spec: Its variant.
        preset: The one that was asked for.
    """
    task, protocol = parse(cell.task), parse(cell.protocol)
    sizes = []
    for sized, size in _every_size(task, sizes_of(preset)):
        if sized == task:
            return _expected(size, protocol, spec)
        sizes.append(size)
    return max((_expected(size, protocol, spec) for size in sizes), default=UNKNOWN_S)


def _every_size(task: Selector, first: str) -> Iterator[tuple[Selector, TaskPreset]]:
    """A task at the size of every preset that has one, calibrated and not; one preset comes first.

    Of its own options those stay that make it another task, as the rule of a transduction does.
    """
    target = registry.find(TASKS, task.name).target
    telling = {key: task.options[key] for key in target.named_by if key in task.options}
    for preset in sorted(target.presets, key=lambda name: name != first):
        for calibrated in (True, False):
            with suppress(InvalidConfig):  # a size that does not go with these options
                asked = Selector(task.name, telling)
                sized, size, _ = sized_task(asked, preset, calibrated=calibrated)
                yield sized, size


def sized_task(
    asked: Selector | str, preset: str, *, calibrated: bool = True
) -> tuple[Selector, TaskPreset, str]:
    """Canonical task selector at a preset's size, that size, and the text a person would type.

    Args:
        asked: The task.
        preset: Name of the preset.
        calibrated: Whether what calibration has chosen takes the place of the preset's size.

    Raises:
        UnknownName: There is no such task or preset.
        InvalidConfig: The task has no sizes for the preset, or an option is wrong.
    """
    asked = parse(asked) if isinstance(asked, str) else asked
    target = registry.find(TASKS, asked.name).target
    preset = sizes_of(preset)
    if preset not in target.presets:
        sizes = ", ".join(target.presets) or "none"
        raise InvalidConfig(f"task {asked.name} has no sizes for preset {preset}; it has: {sizes}.")
    size = target.presets[preset]
    chosen = calibrated_choice(asked, preset) if calibrated else None
    if chosen is not None and chosen.options is not None:
        training = size.protocol_selector.with_options(**chosen.protocol.options)
        both = size.options_selector.with_options(**chosen.options.options)
        size = replace(
            size,
            options=both.show(),
            protocol=training.show(),
            seconds=chosen.seconds or size.seconds,
        )
    options = {**size.options_selector.options, **asked.options}
    return canonical("task", Selector(asked.name, options)), size, asked.show()
