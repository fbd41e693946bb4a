"""Do a plan: into its run folder, in a session, with a report at the end."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from types import FrameType

import click

from bench.api.cache import unwritable_cache
from bench.api.cell import Cell, cell_from_dict
from bench.api.errors import BenchError, InvalidConfig
from bench.api.foreign_prints import prints_to_standard_error
from bench.api.resolve import VariantSpec
from bench.cli.budgets import RUN, budgets_of
from bench.cli.option_groups import jobs_on
from bench.cli.overwriting import refuse_two_schedules
from bench.cli.plan import lacking_lines
from bench.cli.run_end import Shown, has_option, print_end, run_parts
from bench.cli.run_options import RunOptions
from bench.cli.sentences import (
    CELLS_FAILED,
    INTERRUPTED,
    ignore_interrupts,
    system_sentence,
)
from bench.cli.spec_file import spec_of, typed_options, write_spec
from bench.cli.until import refuse_other_looks, train_until_decided
from bench.cli.written_catalog import command_line, write_catalog
from bench.conformance import RunsOn, compared_on
from bench.running.code_of_cells import CodeOfCells
from bench.running.devices import refuse_missing_device
from bench.running.durations import spoken
from bench.running.finished import Finished
from bench.running.missing_data import lacking_data
from bench.running.plan import Plan
from bench.running.read_files import DataFiles
from bench.running.session import Session
from bench.running.worker import WorkerSettings
from bench.timing.shape import AttendShape, parse_rounds, parse_shape
from bench.training.analysis import analysis_cells, asked_probes, model_path
from reports.folder import damaged_lines, torn_lines
from reports.numbers import counted
from results.catalog import ChangedAxis, RunCatalog
from results.looks import Looks
from results.merge import merge
from results.pack import Pack, open_run
from results.row import STATUSES
from results.run_path import LEDGER
from results.store import Store
from results.stored_plan import PLAN, StoredPlan, plan_with

CERTIFIED = 8192
"""Tokens of all rows up to which a certificate calls a slot that may be refused for its size."""


def execute(
    options: RunOptions,
    made: Plan,
    changed: Mapping[str, ChangedAxis] | None = None,
    spec: Mapping[str, object] = RUN,
    shown: Shown = run_parts,
) -> int:
    """Do a plan and report it.

    Args:
        options: Of the command.
        made: The plan.
        changed: The axis that each variant of an ablation changes, for the catalog.
        spec: What the spec file says beside the options.
        shown: Gives the texts to print of the finished run.
    """
    refuse_unfit(options, made)
    jobs = jobs_on({cell.device for cell in made.cells}, options.jobs)
    options = replace(options, jobs=jobs)
    made = replace(made, request=replace(made.request, jobs=jobs))
    _plan_probes(options, made)
    store = _open_with_reused(options, made)
    kept = options.keep_models or bool(made.analysis)
    session = make_session(replace(options, keep_models=kept), store)
    tasks = {one.cell.task: one.task for one in made.quality if one.task}.values()
    # a cell by its label is compared with what its run was compared with
    compares = not options.cells or "baseline" in typed_options()
    write_catalog(
        options,
        store,
        made.variants.values(),
        tasks,
        changed=changed or {},
        has_baseline=compares or not RunCatalog.of(store).baseline,
    )
    _write_plan(options, made, store, spec)
    write_spec(store, {**spec_of(options), **spec})
    for line in lacking_lines(made, lacking_data(made.quality, options.data_directory)):
        click.echo(line, err=True)
    _announce(options, made, session)

    def more_is_planned() -> None:
        _plan_probes(options, made)
        _write_plan(options, made, store, spec)

    def work() -> None:
        if options.verify:
            for on, variants in _compared(options, made).items():
                session.certify(variants, options.impl, on)
        session.train(made.quality)
        if options.looks:
            train_until_decided(options, options.looks, made, session, more_is_planned)
        session.analyze(made.analysis)
        session.measure(made.speed)
        if options.keep_models:
            _tell_of_lost_models(made, session)

    return guarded(options, session, work, shown)


def refuse_unfit(options: RunOptions, made: Plan) -> None:
    """Refuse what cannot be done on this machine or in this folder, before anything is written.

    Args:
        options: Of the command.
        made: The plan.

    Raises:
        BenchError: There are no such data directory, device or probe, or the cells do not belong
            beside those of the run folder or of `--reuse`.
    """
    _ = options.data_directory
    refuse_missing_devices(made)
    if options.probes:
        asked_probes(options.probes)
    source = open_run(options.reuse) if options.reuse else None
    if source is not None:
        _refuse_beside(options, source, "another --reuse")
    if (options.folder / LEDGER).is_dir():
        there = Store(options.folder)
        _refuse_beside(options, there, "another --out")
        if source is not None:
            refuse_two_schedules({one.folder: _looks_of(one) for one in (there, source)})


def _looks_of(run: Store | Pack) -> Looks | None:
    """When the scores of a run were looked at; None where they were not."""
    return RunCatalog.of(run).looks


def _refuse_beside(options: RunOptions, run: Store | Pack, instead: str) -> None:
    """Refuse cells that do not belong beside those of a run."""
    refuse_other_looks(options, run, instead)
    refuse_other_preset(options, run, instead)


def refuse_missing_devices(made: Plan) -> None:
    """Refuse a plan of which this machine lacks a device.

    Raises:
        InvalidConfig: It lacks one.
    """
    for device in {cell.device for cell in made.cells}:
        refuse_missing_device(device)


def _open_with_reused(options: RunOptions, made: Plan) -> Store:
    """Open the run folder, and put the cells of `--reuse` into it.

    They are the planned ones, and those of other seeds where looks may still plan more. A value
    of other code or other data is marked from the start, for the run may end before it asks for the
    cell.
    """
    store = open_store(options)
    if options.reuse:
        wanted = {cell.id for cell in made.cells}
        if options.looks:
            wanted |= _at_other_seeds(made, open_run(options.reuse))
        data = DataFiles(options.data_directory)
        today = Finished((), CodeOfCells(), data, (), keep_old=options.keep_old)
        taken = merge(options.folder, [options.reuse], wanted, today.restated)
        lost = (torn_lines(taken.torn_tails), damaged_lines(taken.corrupt_lines))
        for said in filter(None, lost):
            click.echo(f"{options.reuse}: {said}", err=True)
        click.echo(f"{counted(taken.added, 'finished cell')} from {options.reuse}.", err=True)
    return store


def _at_other_seeds(made: Plan, source: Store | Pack) -> set[str]:
    """Ids of cells of a run that are planned ones under another seed, probes among them."""
    planned = {replace(one, seed=0) for one in made.cells if one.kind != "speed"}
    stored = source.ledger().newest().values()
    cells = (cell_from_dict(dict(record.cell)) for record in stored)
    return {cell.id for cell in cells if replace(cell, seed=0) in planned}


def refuse_other_preset(
    options: RunOptions, run: Store | Pack, instead: str = "another --out"
) -> None:
    """Refuse cells that may be ranked beside cells that are too small for it, in one folder.

    Args:
        options: Of the command.
        run: What the command adds its cells to.
        instead: What else to give.

    Raises:
        InvalidConfig: One of the two presets ranks, and the other one does not.
    """
    held = RunCatalog.of(run)
    if held.preset and held.ranks != options.size.ranks:
        small = options.preset if held.ranks else held.preset
        same = f", or --preset {held.preset}" if has_option("preset") else ""
        raise InvalidConfig(
            f"{run.folder} is a run of the preset {held.preset}, and cells of {small} are too "
            f"small to be ranked beside others; give {instead}{same}."
        )


def _plan_probes(options: RunOptions, made: Plan) -> None:
    """Add the probes of every trained model, once."""
    if options.probes:
        trained = [planned.cell for planned in made.quality]
        probed = analysis_cells(trained, asked_probes(options.probes))
        made.analysis = [*dict.fromkeys((*made.analysis, *probed))]


def _write_plan(options: RunOptions, made: Plan, store: Store, spec: Mapping[str, object]) -> None:
    now = StoredPlan(
        cells={cell.id: cell.label for cell in made.cells},
        left_out=[asdict(left) for left in made.left_out],
        budgets=budgets_of(options, made, spec),
    )
    expected = {"expected_s": round(made.seconds, 1)}
    store.update_json(PLAN, lambda held: {**expected, **plan_with(held, now)})


def _compared(options: RunOptions, made: Plan) -> dict[RunsOn | None, list[VariantSpec]]:
    """Variants by where their certificates compare with float64: where and as they are timed."""
    place = (options.device, options.dtype)
    asked = bool(options.shape) or compared_on(*place, (), options.impl) is not None
    specs = {one.spec.canonical.show(): one.spec for one in (*made.quality, *made.speed)}
    shapes: dict[str, list[AttendShape]] = {name: [] for name in specs}
    for one in made.speed:
        if asked and not _too_long(one.cell):
            shapes[one.spec.canonical.show()].append(parse_shape(one.cell.task))
    found: dict[RunsOn | None, list[VariantSpec]] = {}
    rounds = options.rounds_of(AttendShape())
    for name, spec in specs.items():
        on = compared_on(*place, shapes[name], options.impl, rounds)
        found.setdefault(on, []).append(spec)
    return found


def _too_long(cell: Cell) -> bool:
    """Whether a slot may be refused for its size, so that a certificate must not call it."""
    shape, limits = parse_shape(cell.task), parse_rounds(cell.protocol)
    limited = limits.most_mb > 0 or limits.most_s > 0
    return shape.place == "slot" and limited and shape.batch * shape.length > CERTIFIED


def open_store(options: RunOptions) -> Store:
    """Open or make the run folder.

    Raises:
        InvalidConfig: Nothing can be written there.
    """
    try:
        return Store.create(options.folder)
    except OSError as error:
        raise InvalidConfig(
            f"cannot write to {options.folder} ({error.strerror}); give another --out."
        ) from error


def make_session(options: RunOptions, store: Store) -> Session:
    """A session with the options of the command line."""
    settings = WorkerSettings(data_dir=options.data_dir, plugins=options.plugin)
    return Session(
        store,
        settings,
        jobs=options.jobs,
        inline=options.inline,
        retry=frozenset(status for status in STATUSES if status in options.retry),
        keep_models=options.keep_models,
        keep_old=options.keep_old,
    )


def guarded(
    options: RunOptions, session: Session, work: Callable[[], None], shown: Shown = run_parts
) -> int:
    """Run work and report; where it stops early, say why, what is saved and how to go on."""
    if warning := unwritable_cache():
        click.echo(f"warning: {warning}", err=True)
    try:
        with prints_to_standard_error(), _interrupts_raised():
            work()
    except KeyboardInterrupt:
        _tell_of_stop(options, session, "stopped.")
        return INTERRUPTED
    except OSError as error:
        _tell_of_stop(options, session, f"stopped: {system_sentence(error)}")
        return CELLS_FAILED
    finally:
        session.store.close()
    return print_end(options, session, shown)


def _tell_of_stop(options: RunOptions, session: Session, why: str) -> None:
    try:
        finished = len(session.store.finished())
        are = "is" if finished == 1 else "are"
        saved = f"{counted(finished, 'finished cell')} {are} saved in {options.folder}"
    except (BenchError, OSError):
        saved = f"what is saved in {options.folder} cannot be read"
    again = ", without --retry ok, which trains them again" if "ok" in options.retry else ""
    click.echo(f"\n{why} {saved}; go on with: {command_line()}{again}", err=True)


@contextmanager
def _interrupts_raised() -> Iterator[None]:
    """Stop the work inside at Ctrl-C or SIGTERM; both are ignored from then on."""
    handlers = {one: signal.signal(one, _interrupt) for one in (signal.SIGINT, signal.SIGTERM)}
    stopped = False
    try:
        yield
    except KeyboardInterrupt:
        stopped = True
        raise
    finally:
        if not stopped:
            for one, handler in handlers.items():
                signal.signal(one, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Stop once; while workers are ended and what is saved is counted, nothing stops that."""
    ignore_interrupts()
    raise KeyboardInterrupt


def _tell_of_lost_models(made: Plan, session: Session) -> None:
    """Say which cells keep no weights: those that were trained before without --keep-models."""
    newest = session.store.ledger().newest()
    trained = [one.cell for one in made.quality if one.cell.id in newest]
    scored = [cell for cell in trained if newest[cell.id].status == "ok"]
    lost = [cell for cell in scored if not model_path(session.models, cell).is_file()]
    if lost:
        click.echo(
            f"warning: this folder has no weights of {counted(len(lost), 'cell')}: they were "
            "trained without --keep-models, or taken by --reuse, which takes none; run into "
            "another --out without --reuse to train and keep them.",
            err=True,
        )


def _announce(options: RunOptions, made: Plan, session: Session) -> None:
    checks = "certificates and " if options.verify else ""
    left = replace(
        made,
        quality=[one for one in made.quality if session.wants(one.cell)],
        speed=[one for one in made.speed if session.wants(one.cell)],
    )
    finished = len(made.quality) + len(made.speed) - len(left.quality) - len(left.speed)
    before = f", {finished} of them finished before" if finished else ""
    click.echo(
        f"{counted(len(made.quality), 'training cell')} and "
        f"{counted(len(made.speed), 'speed cell')} into {options.folder}{before}, about "
        f"{spoken(left.seconds)} on {counted(session.jobs, 'process', 'processes')}, not "
        f"counting {checks}the report; {len(made.left_out)} left out.",
        err=True,
    )
