"""From a request to cells: pure, without clock, device or disk."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from bench.api import registry
from bench.api.call import REGIMES, Regime
from bench.api.cell import Cell
from bench.api.command import run_command
from bench.api.errors import InvalidConfig, Refused, UnknownName
from bench.api.registry import BACKBONE_AXES, DefaultTask, Registration
from bench.api.resolve import VariantSpec, canonical_backbone, resolve
from bench.api.selector import Selector, parse, parse_list
from bench.api.task import Entry, Task, TaskPreset
from bench.api.variant import IMPLS
from bench.running.presets import CONTROLS, Preset, find_preset
from bench.timing.shape import AttendShape, parse_rounds, parse_shape
from bench.training.analysis import revisions_of_look, trained_cell
from bench.training.protocol import canonical_protocol, read_protocol

SPEED_SHARE = 0.45
"""Most of a budget that timing may take where there is training too."""
DTYPES = ("float32", "float64", "bfloat16")
DEVICES = ("cpu", "cuda")
BASELINE = "scaled_dot"
PLAIN_DEFAULT_TASK = "transduction[rule=reverse]"
"""Where a combination without a default task of its own is shown."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked for, as typed."""

    variants: str = "all"
    """Selectors separated by commas, or `all`."""
    tasks: str = ""
    """Task selectors separated by commas; empty for each variant's default task and the preset's
    own."""
    backbone: str = ""
    """Backbone selector; empty for the task's own."""
    slot: str = ""
    """Slot of the backbone; empty for its main one."""
    preset: str = "quick"
    seeds: int = 0
    """Number of seeds; 0 for the preset's."""
    first_seed: int = 0
    protocol: str = ""
    """Options that replace the task's training protocol, `adam[steps=200]`."""
    baseline: str = BASELINE
    device: str = "cpu"
    dtype: str = "float32"
    impl: str = "auto"
    jobs: int = 2
    speed: bool = True
    """Whether to time the variants too."""
    quality: bool = True
    """Whether to train them."""
    minutes: float = 0.0
    """Wall time to fill (min); 0 for the preset's."""
    # out of `repr`, by which a study knows its question: they say where things lie, not what
    plugins: tuple[str, ...] = field(default=(), repr=False)
    """Files that registered names beside the bench's own, for the commands that a plan prints."""
    data_dir: str = field(default="", repr=False)
    """Data directory, for the same commands."""

    def __post_init__(self) -> None:
        """Check the closed choices."""
        for kind, value, known in (
            ("device", self.device, DEVICES),
            ("dtype", self.dtype, DTYPES),
            ("impl", self.impl, IMPLS),
        ):
            if value not in known:
                raise UnknownName.among(kind, value, known)
        if self.seeds < 0:
            raise InvalidConfig(f"seeds must be >= 0, and 0 is the preset's; got {self.seeds}.")
        if self.jobs < 1:
            raise InvalidConfig(f"a plan is for at least 1 job, got {self.jobs}.")
        if self.minutes < 0:
            raise InvalidConfig(f"minutes must be >= 0, got {self.minutes}.")


@dataclass(frozen=True)
class LeftOut:
    """What the plan does not hold, why, and the command that runs it."""

    label: str
    reason: str
    command: str


@dataclass(frozen=True)
class PlannedCell:
    """A cell, and what the planner expects of it."""

    cell: Cell
    seconds: float
    """CPU seconds on the reference machine."""
    shown_task: str = ""
    """The task as a person would type it."""
    shown_variant: str = ""
    """The variant as it was asked for."""


@dataclass
class Plan:
    """Cells in the order in which they should run."""

    request: Request
    preset: Preset
    quality: list[PlannedCell] = field(default_factory=list)
    speed: list[PlannedCell] = field(default_factory=list)
    analysis: list[Cell] = field(default_factory=list)
    """Looks at models that the quality cells leave."""
    left_out: list[LeftOut] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Canonical variant to the text that asked for it."""
    baseline: str = ""
    """Canonical selector of the baseline."""

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


def plan(request: Request, missing: Mapping[str, str] | None = None) -> Plan:
    """Turn a request into cells.

    Args:
        request: What was asked for.
        missing: Tasks whose comparisons are left out, for their data are not there, and why not.

    Raises:
        UnknownName: A variant, task, backbone or preset that nobody registered.
        InvalidConfig: An option with a wrong name or value.
    """
    preset = find_preset(request.preset)
    specs = asked_variants(request.variants)
    made = Plan(request, preset)
    baseline = resolve(request.baseline)
    made.baseline = baseline.canonical.show()
    for asked, spec in (*specs, (request.baseline, baseline)):
        made.names.setdefault(spec.canonical.show(), parse(asked).show())
    wanted: list[PlannedCell] = []
    if request.quality and preset.comparisons:
        proposed = _unique(_comparisons(request, preset, specs, baseline, made.names))
        without = missing or {}
        wanted = [one for one in proposed if parse(one.cell.task).name not in without]
        made.left_out += [_no_data(request, name, why) for name, why in without.items()]
    elif request.quality:
        wanted = list(_unique(_quality(request, preset, specs, baseline, made.names)))
        if not request.tasks:
            made.left_out += [
                _without_default_task(request, name)
                for name, spec in specs
                if default_task_of(spec) is None
            ]
    seconds = _seconds_to_fill(request, preset)
    if request.speed and preset.lengths:
        _add_speed(made, specs, baseline, wanted)
        _fit_speed(made, SPEED_SHARE * seconds if request.quality else seconds)
    timing = sum(planned.seconds for planned in made.speed)
    _fill(made, wanted, max(0.0, seconds - timing) * request.jobs)
    return made


def asked_variants(text: str) -> list[tuple[str, VariantSpec]]:
    """Resolve a variants option; `all` is everything with a default task."""
    names: list[str] = []
    for selector in parse_list(text):
        if selector.name == "all":
            names += list(registry.listed_variants())
        else:
            names.append(selector.show())
    return [(name, resolve(name)) for name in dict.fromkeys(names)]


def _seconds_to_fill(request: Request, preset: Preset) -> float:
    """Wall time for training and timing (s); infinite where nothing limits it."""
    seconds = budget_seconds(request, preset)
    if seconds == 0 or (request.tasks and not request.minutes):
        return float("inf")
    return seconds * 11 / 12  # a twelfth for certificates, start-up and the report


def budget_seconds(request: Request, preset: Preset) -> float:
    """Wall time that the plan may fill (s); 0 for no limit."""
    return 60 * request.minutes or preset.budget_s


def _no_data(request: Request, task: str, reason: str) -> LeftOut:
    chosen = [] if request.variants == Request.variants else ["--variants", request.variants]
    words = ["--preset", request.preset, "--tasks", task, *chosen, *_typed(request)]
    return LeftOut(f"training on {task}", reason, _command(request, *words))


def _command(request: Request, *words: str) -> str:
    return run_command(*words, plugins=request.plugins, data_dir=request.data_dir)


def _typed(request: Request) -> list[str]:
    """Options of a request that are not the usual ones, for a command that asks the same of less.

    Those that choose what is run (variants, tasks, the preset and its minutes) are not among them.
    """
    options = {
        "--backbone": "backbone",
        "--slot": "slot",
        "--seeds": "seeds",
        "--first-seed": "first_seed",
        "--training": "protocol",
        "--baseline": "baseline",
        "--device": "device",
        "--dtype": "dtype",
        "--impl": "impl",
    }
    asked = {option: getattr(request, name) for option, name in options.items()}
    usual = {option: getattr(Request, name) for option, name in options.items()}
    changed = {option: value for option, value in asked.items() if value != usual[option]}
    return [word for option, value in changed.items() for word in (option, str(value))]


def _sized(request: Request) -> list[str]:
    """The preset where it is not the usual one, and the other options that were typed."""
    preset = [] if request.preset == Request.preset else ["--preset", request.preset]
    return [*preset, *_typed(request)]


def _without_default_task(request: Request, name: str) -> LeftOut:
    return LeftOut(
        f"training of {name}",
        "no task here shows what it is for yet; it is certified and timed",
        _command(request, "--variants", name, "--tasks", "recall", *_sized(request)),
    )


def _fill(made: Plan, wanted: Sequence[PlannedCell], room: float) -> None:
    """Take cells in order while they fit; list the rest with its command."""
    spent = 0.0
    for planned in wanted:
        spent += planned.seconds
        if spent <= room:
            shown = made.names.get(planned.cell.variant, "")
            made.quality.append(replace(planned, shown_variant=shown))
            continue
        command = _command(made.request, "--cell", planned.cell.label)
        made.left_out.append(LeftOut(planned.cell.label, _no_room(made), command))


def _no_room(made: Plan) -> str:
    minutes = budget_seconds(made.request, made.preset) / 60
    return f"does not fit {minutes:.0f} minutes of preset {made.preset.name}; --minutes gives more"


def _fit_speed(made: Plan, seconds: float) -> None:
    """Keep timing within its share: variants in order while they fit, the baseline in any case."""
    variants = dict.fromkeys(planned.cell.variant for planned in made.speed)
    kept, spent = set[str](), 0.0
    for variant in sorted(variants, key=lambda name: name != made.baseline):
        mine = sum(one.seconds for one in made.speed if one.cell.variant == variant)
        if variant == made.baseline or spent + mine <= seconds:
            kept.add(variant)
            spent += mine
            continue
        name = made.names[variant]
        words = ["--variants", name, "--no-quality", *_sized(made.request)]
        command = _command(made.request, *words)
        made.left_out.append(LeftOut(f"speed of {name}", _no_room(made), command))
    made.speed = [planned for planned in made.speed if planned.cell.variant in kept]


def _unique(planned: Iterable[PlannedCell]) -> Iterator[PlannedCell]:
    seen: set[str] = set()
    for one in planned:
        if one.cell.id not in seen:
            seen.add(one.cell.id)
            yield one


def _quality(
    request: Request,
    preset: Preset,
    specs: Sequence[tuple[str, VariantSpec]],
    baseline: VariantSpec,
    names: dict[str, str],
) -> Iterator[PlannedCell]:
    """Cells in order of importance: seed by seed, default tasks first, then the shared tasks."""
    seeds = range(request.first_seed, request.first_seed + (request.seeds or preset.seeds))
    if request.tasks:
        for seed, task in product(seeds, parse_list(request.tasks)):
            for _, spec in (*specs, (request.baseline, baseline)):
                yield quality_cell(request, spec, DefaultTask(task=task.show()), seed)
        return
    beside = [(name, resolve(name)) for name in CONTROLS] + [(request.baseline, baseline)]
    for name, spec in beside:
        names.setdefault(spec.canonical.show(), parse(name).show())
    housed = [
        (spec, default_task)
        for _, spec in specs
        if (default_task := default_task_of(spec)) is not None
    ]
    for seed, (spec, default_task) in product(seeds, housed):
        own = quality_cell(request, spec, default_task, seed)
        yield own
        # a backbone of the default_task's own may cost more than the task's, whoever stands in it
        least = own.seconds if default_task.backbone else 0.0
        for _, control in beside:
            planned = quality_cell(request, control, default_task, seed)
            yield replace(planned, seconds=max(planned.seconds, least))
    asked = {name for name, _ in specs}
    roster = [name for name in preset.roster if name in asked]
    for seed, task_name, name in product(seeds, preset.further, roster):
        yield quality_cell(request, resolve(name), DefaultTask(task=task_name), seed)


def _comparisons(
    request: Request,
    preset: Preset,
    specs: Sequence[tuple[str, VariantSpec]],
    baseline: VariantSpec,
    names: dict[str, str],
) -> Iterator[PlannedCell]:
    """Seed by seed, each task's comparison: controls and baseline, then those that were asked for.

    Every family has its first member run at all seeds before any has its second.
    """
    every = any(one.name == "all" for one in parse_list(request.variants))
    asked = {spec.canonical.show() for _, spec in specs}
    groups = [parse_list(request.tasks)] if request.tasks else contested_tasks()
    beside = [Entry(variant=name) for name in (*CONTROLS, request.baseline)]
    for spec in (baseline, *(resolve(name) for name in CONTROLS)):
        asked.add(spec.canonical.show())
    seeds = range(request.first_seed, request.first_seed + (request.seeds or preset.seeds))
    for seed, task in ((seed, task) for group in groups for seed in seeds for task in group):
        target: type[Task] = registry.find("task", task.name).target
        for entry in (*beside, *target.comparison):
            spec = resolve(entry.variant)
            canonical = spec.canonical.show()
            if every or canonical in asked:
                names.setdefault(canonical, parse(entry.variant).show())
                default_task = DefaultTask(
                    task=entry.task or task.show(), backbone=entry.backbone, slot=entry.slot
                )
                yield quality_cell(request, spec, default_task, seed)


def contested_tasks() -> list[list[Selector]]:
    """Tasks that propose a comparison: the first member of each family, then the second, and so on.

    Real data come before generated ones; families without real data have all members first.
    """
    groups: list[list[Selector]] = []
    for entries in tasks_by_family().values():
        members = [registered for registered in entries if registered.target.comparison]
        drawn = all(registered.target.is_generated() for registered in members)
        for place, registered in enumerate(members):
            rank = 0 if drawn else place
            groups += [[]] * (rank + 1 - len(groups))
            groups[rank] = [*groups[rank], Selector(registered.name)]
    return groups


def tasks_by_family() -> dict[str, list[Registration]]:
    """Tasks of each family by name, real data before generated ones; those without one last."""
    families: dict[str, list[Registration]] = {}
    for registered in registry.registrations("task").values():
        families.setdefault(registered.target.family, []).append(registered)
    return {
        family: sorted(families[family], key=lambda e: (e.target.is_generated(), e.name))
        for family in sorted(families, key=lambda name: (not name, name))
    }


def default_task_of(spec: VariantSpec) -> DefaultTask | None:
    """Where a variant is trained if nobody says otherwise; None where no task here shows it yet."""
    default_task = spec.registered.default_task or DefaultTask(task=PLAIN_DEFAULT_TASK)
    return default_task if default_task.task else None


def quality_cell(
    request: Request, spec: VariantSpec, default_task: DefaultTask, seed: int
) -> PlannedCell:
    """One cell of a variant on a task, at the preset's size.

    A backbone that the variant cannot stand in still makes a cell: its row says why not.
    """
    task, size, shown = sized_task(default_task.task, request.preset)
    backbone = request.backbone or default_task.backbone or size.backbone
    try:
        written = canonical_backbone(backbone, spec.fixes)
    except Refused:
        written = canonical_backbone(backbone, {})
    slots: tuple[str, ...] = registry.find("backbone", written.name).target.slots
    slot = request.slot or default_task.slot or slots[0]
    if slot not in slots:
        raise UnknownName.among(f"slot of {written.name}", slot, slots)
    protocol = parse(size.protocol)
    if request.protocol:
        changed = parse(request.protocol)
        if changed.name != protocol.name:
            raise UnknownName.among("training protocol", changed.name, [protocol.name])
        protocol = protocol.with_options(**changed.options)
    cell = Cell(
        kind="quality",
        task=task.show(),
        backbone=written.show(),
        variant=spec.canonical.show(),
        slot=slot,
        protocol=canonical_protocol(protocol).show(),
        impl=request.impl,
        dtype=request.dtype,
        device=request.device,
        seed=seed,
        revisions=revisions(spec, task.name, written),
    )
    return PlannedCell(cell, _expected(size, protocol, spec), shown)


def _expected(size: TaskPreset, protocol: Selector, spec: VariantSpec) -> float:
    """Scale the task's own figure by the steps asked for and the variant's cost."""
    usual, asked = read_protocol(size.protocol), read_protocol(protocol)
    share = asked.steps / usual.steps if not asked.cpu_seconds else 1.0
    if asked.cpu_seconds and usual.cpu_seconds:
        share = asked.cpu_seconds / usual.cpu_seconds
    return size.seconds * spec.registered.cost * min(share, 100.0)


def sized_task(text: str, preset: str) -> tuple[Selector, TaskPreset, str]:
    """Canonical task selector at a preset's size, that size, and the text a person would type."""
    asked = parse(text)
    target: type[Task] = registry.find("task", asked.name).target
    preset = find_preset(preset).sizes or preset
    if preset not in target.presets:
        sizes = ", ".join(target.presets) or "none"
        raise InvalidConfig(f"task {asked.name} has no sizes for preset {preset}; it has: {sizes}.")
    size = target.presets[preset]
    options: dict[str, Any] = {**parse(size.options).options, **asked.options}
    return registry.canonical("task", Selector(asked.name, options)), size, asked.show()


def revisions(spec: VariantSpec, task: str, backbone: Selector) -> str:
    """`name:number` of everything whose code decides the numbers of a cell, where it is above 1."""
    used = [("task", task), ("backbone", backbone.name)]
    backbone = registry.complete("backbone", backbone)
    for axis in BACKBONE_AXES:
        for chosen in registry.options_of(backbone.options.get(axis, ())):
            used.append((axis, chosen.name))
            if "joint" in chosen.options:
                used.append(("joint", registry.options_of(chosen.options["joint"])[0].name))
    own = registry.show_revisions((name, registry.find(axis, name).revision) for axis, name in used)
    return " ".join(sorted({*own.split(), *spec.revision.split()}))


def canonical_cell(cell: Cell) -> Cell:
    """The cell as it is planned today: a label may say a default, or one that has changed since."""
    if cell.kind == "analysis":
        return cell
    cell = replace(cell, variant=resolve(cell.variant).canonical.show())
    if cell.kind == "speed":
        task, protocol = parse_shape(cell.task).show(), parse_rounds(cell.protocol).show()
        return replace(cell, task=task, protocol=protocol)
    return replace(
        cell,
        task=registry.canonical("task", parse(cell.task)).show(),
        backbone=canonical_backbone(cell.backbone, {}).show(),
        protocol=canonical_protocol(cell.protocol).show(),
    )


def revisions_of(cell: Cell) -> str:
    """What `Cell.revisions` would be if the cell were planned now."""
    spec = resolve(cell.variant)
    if cell.kind == "speed":
        return spec.revision
    if cell.kind == "analysis":
        return revisions_of_look(cell, revisions_of(trained_cell(cell)))
    return revisions(spec, parse(cell.task).name, parse(cell.backbone))


def _add_speed(
    made: Plan,
    specs: Sequence[tuple[str, VariantSpec]],
    baseline: VariantSpec,
    wanted_training: Sequence[PlannedCell],
) -> None:
    """Speed cells at each length, in the regimes in which the variant would be trained."""
    trained: dict[str, set[str]] = {}
    for planned in wanted_training:
        regime = "causal" if planned.cell.slot in ("causal", "self") else "cross"
        trained.setdefault(planned.cell.variant, set()).add(regime)
    timed: dict[str, list[Regime]] = {}
    for _, spec in specs:
        variant = spec.canonical.show()
        possible = speed_regimes(spec)
        if not possible:
            name = made.names[variant]
            made.left_out.append(
                LeftOut(
                    f"speed of {name}",
                    "it has no attention of its own that could be timed beneath a backbone",
                    _command(made.request, "--variants", name, *_sized(made.request)),
                )
            )
            continue
        wanted = trained.get(variant, set()) & set(possible)
        timed[variant] = [regime for regime in possible if regime in wanted or not wanted]
    # the baseline stands beside everything that is timed, or nothing could be compared
    everywhere = {regime for regimes in timed.values() for regime in regimes}
    able = [regime for regime in REGIMES if _can_be_timed(baseline, regime)]
    timed[baseline.canonical.show()] = [regime for regime in able if regime in everywhere]
    for variant, regimes in timed.items():
        for regime, length in product(regimes, made.preset.lengths):
            made.speed.append(_speed_cell(made, resolve(variant), regime, length))


def _speed_cell(made: Plan, spec: VariantSpec, regime: Regime, length: int) -> PlannedCell:
    request = made.request
    shape = AttendShape(length=length, regime=regime)
    cell = Cell(
        kind="speed",
        task=shape.show(),
        backbone="none",
        variant=spec.canonical.show(),
        slot=regime,
        protocol=parse_rounds(made.preset.rounds).show(),
        impl=request.impl,
        dtype=request.dtype,
        device=request.device,
        seed=request.first_seed,
        revisions=spec.revision,
    )
    return PlannedCell(cell, made.preset.speed_s / len(made.preset.lengths), "attend")


def speed_regimes(spec: VariantSpec) -> list[Regime]:
    """Where a variant's attention is timed: cross, causal or both; else where it can stand."""
    decoder = spec.fixes.get("decoder")
    if decoder is not None and not registry.find("decoder", decoder.name).target.attends:
        return []
    possible = [regime for regime in REGIMES if _can_be_timed(spec, regime)]
    usual: list[Regime] = [regime for regime in possible if regime in ("cross", "causal")]
    return usual or possible[:1]


def _can_be_timed(spec: VariantSpec, regime: Regime) -> bool:
    capabilities = frozenset({"padding", "stepwise", "equal_width", "equal_heads", "source_tokens"})
    # beneath the heads there is no output and no loss, so what they need is given
    beneath = capabilities | {"loss:reinforce", "gold_alignment", "open_loop"}
    beneath |= {"token_extras", "source_states", "selection"}
    if regime in ("self", "pool"):
        beneath -= {"stepwise"}
    return spec.refusal(beneath | {regime}) is None
