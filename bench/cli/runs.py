"""What `run`, `plan`, `ablate` and `study` do once their options are read."""

import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

import click
import torch
from tabulate import tabulate

from bench import ablate as ablations
from bench.api.cell import Cell, cell_from_dict, parse_label
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import load_package
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.cli.options import RunOptions, read_spec, refuse_beside_spec, spec_of
from bench.running.catalog import catalog_of, known_metrics
from bench.running.missing_data import lacking_data, missing_data
from bench.running.plan import Plan, plan
from bench.running.presets import find_preset
from bench.running.progress import spoken
from bench.running.quality_cells import PlannedCell, sized_task
from bench.running.request import asked_variants
from bench.running.revisions import canonical_cell, revisions_of
from bench.running.runner import NO_CUDA
from bench.running.session import Session, Tally
from bench.running.worker import WorkerSettings, load_plugins
from bench.training.analysis import analysis_cells, asked_probes, model_path, trained_cell
from results.catalog import CATALOG, ChangedAxis, RunCatalog
from results.row import STATUSES
from results.store import Store
from tasks.data.files import DATA_VARIABLE, data_folder

MOST_REASONS = 20
"""Why cells have no value: so many sentences at the end of a run, and all of them in the report."""


def load_everything(plugins: tuple[str, ...]) -> None:
    """Fill the registry."""
    load_package("variants")
    load_package("tasks")
    load_plugins(plugins)


def run(options: RunOptions) -> int:
    """Plan, certify, train, time, report; returns the exit code."""
    options, _ = read_spec(options, "run")
    load_everything(options.plugin)
    if options.cells:
        # beside a finished run and not in it, so that a cell of it is run again
        options = replace(options, out=options.out or "runs/cells")
        return execute(options, cell_plan(options))
    missing = missing_data(options.request, named_data_dir(options))
    for task, reason in missing.items():
        click.echo(f"left out: {task}: {reason}", err=True)
    return execute(options, plan(options.request, missing))


def named_data_dir(options: RunOptions) -> Path | None:
    """The folder of `--data-dir`; None where it was not given.

    Raises:
        DataUnavailable: It is no folder.
    """
    return data_folder(Path(options.data_dir)) if options.data_dir else None


def refuse_missing_device(cells: Iterable[Cell]) -> None:
    """Refuse what every cell would be refused for.

    Raises:
        InvalidConfig: A cell wants a device that this machine does not have.
    """
    if any(cell.device == "cuda" for cell in cells) and not torch.cuda.is_available():
        raise InvalidConfig(NO_CUDA)


def show_plan(options: RunOptions) -> None:
    """Print what a run would do."""
    load_everything(options.plugin)
    directory = named_data_dir(options)
    made = plan(options.request, missing_data(options.request, directory))
    refuse_missing_device(made.cells)
    lacking = lacking_data(made.quality, directory)
    if options.as_json:
        click.echo(
            json.dumps(
                {
                    "cells": [{"id": c.id, "label": c.label} for c in made.cells],
                    "left_out": [asdict(left) for left in made.left_out],
                    "no_data": lacking,
                    "expected_s": round(made.seconds, 1),
                },
                indent=1,
            )
        )
        return
    if made.cells:
        click.echo(_by_task(made))
    for left in made.left_out:
        click.echo(f"left out: {left.label}: {left.reason.rstrip('.')}; {left.command}")
    for line in _lacking_lines(made, lacking):
        click.echo(line)
    refused = sum(planned.cell.task in lacking for planned in made.quality)
    without = f" ({refused} of them without data)" if refused else ""
    click.echo(
        f"{len(made.quality)} training{without} and {len(made.speed)} speed cells, "
        f"about {spoken(made.seconds)} with {made.request.jobs} jobs; "
        f"{len(made.left_out)} left out."
    )


def _by_task(made: Plan) -> str:
    """A line for each task and for each regime that is timed: how much, and for how long."""
    groups: dict[str, list[PlannedCell]] = {}
    for planned in made.quality:
        groups.setdefault(_task_name(planned), []).append(planned)
    for planned in made.speed:
        groups.setdefault(f"speed, {planned.cell.slot}", []).append(planned)
    rows = [
        [
            name,
            len({planned.cell.variant for planned in group}),
            len({planned.cell.seed for planned in group}),
            len(group),
            spoken(sum(planned.seconds for planned in group)),
        ]
        for name, group in groups.items()
    ]
    heads = ["task", "variants", "seeds", "cells", "CPU time"]
    return tabulate(rows, heads, tablefmt="simple", colalign=["left", *["right"] * 4]) + "\n"


def _task_name(planned: PlannedCell) -> str:
    return planned.shown_task or parse(planned.cell.task).name


def _lacking_lines(made: Plan, lacking: Mapping[str, str]) -> list[str]:
    """A sentence for each task that was named and has no data here."""
    names = {planned.cell.task: _task_name(planned) for planned in made.quality}
    return [
        f"no data: {names[task]}: {reason.rstrip('.')}; its cells will be refused"
        for task, reason in lacking.items()
    ]


def ablate(base: str, axis: str, options: RunOptions) -> int:
    """Run an ablation; returns the exit code."""
    options, asked_before = read_spec(options, "ablate")
    if asked_before:
        refuse_beside_spec(name for name, typed in (("base", base), ("axis", axis)) if typed)
        base, axis = asked_before.get("base", ""), asked_before.get("axis", "")
    if not (base and axis):
        raise InvalidConfig("ablate: give --base and --axis, or --spec.")
    load_everything(options.plugin)
    asked = ablations.ablation(base, axis)
    folder = options.out or f"runs/ablate-{resolve(base).name}-{axis}"
    options = replace(options, out=folder, speed=False, baseline=base)
    made = ablations.plan_ablation(options.request, asked, base)
    spec = {"command": "ablate", "base": base, "axis": axis}
    return execute(options, made, ablations.changed_axes(asked), spec)


def study(options: RunOptions, tuning: dict[str, Any]) -> int:
    """Run studies; returns the exit code."""
    from bench.study import StudyRequest, run_studies, study_facts

    options, asked_before = read_spec(options, "study")
    if options.variants == "":
        raise InvalidConfig("study: give --variants, or --spec.")
    if asked_before:
        changed = [f.name for f in fields(StudyRequest) if tuning.get(f.name, "") != f.default]
        refuse_beside_spec(name for name in changed if name in tuning)
        tuning = asked_before["tuning"]
    load_everything(options.plugin)
    named_data_dir(options)
    asked = StudyRequest(request=options.request, **tuning)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise InvalidConfig(NO_CUDA)
    options = replace(options, out=options.out or "runs/study")
    names = {spec.canonical.show(): name for name, spec in asked_variants(options.variants)}
    names.setdefault(resolve(options.baseline).canonical.show(), options.baseline)
    task, _, shown = sized_task(options.tasks, options.preset)
    store = open_store(options)
    session = make_session(options, store)
    write_catalog(options, store, names, {task.show(): shown})
    store.write_json("spec.json", {**spec_of(options), "command": "study", "tuning": tuning})

    def work() -> None:
        results = run_studies(asked, session)
        finals = [(r.variant, planned.cell) for r in results for planned in r.finals]
        for variant, cell in finals:
            names.setdefault(cell.variant, f"{variant} tuned")
        facts = study_facts(asked, results)
        trials = {variant: result.variant for result in results for variant in result.tried}
        write_catalog(options, store, names, {task.show(): shown}, study=facts, trials=trials)
        if options.verify:
            session.certify([cell.variant for _, cell in finals], options.impl)

    return _guarded(options, session, work)


def analyze(folder: Path, probes: str, examples: int, options: RunOptions) -> int:
    """Look at every model that a run kept; returns the exit code.

    Raises:
        NotARunFolder: The folder has no ledger.
        InvalidConfig: The run kept no models.
    """
    load_everything(options.plugin)
    named_data_dir(options)
    chosen = asked_probes(probes)
    store = Store(folder)
    finished = [record for record in store.ledger().newest().values() if record.status == "ok"]
    cells = [cell_from_dict(dict(record.cell)) for record in finished]
    models = folder / "models"
    trained = [c for c in cells if c.kind == "quality" and model_path(models, c).is_file()]
    if not trained:
        raise InvalidConfig(
            f"{folder} has no models; run with --keep-models into another --out, "
            "because finished cells are not trained again."
        )
    refuse_missing_device(trained)
    options = replace(options, out=str(folder))
    session = make_session(options, store)
    catalog = RunCatalog.from_json(store.read_json(CATALOG))
    added = replace(
        catalog, metrics=known_metrics([]), commands=(command_line(),), **_places(options)
    )
    store.write_json(CATALOG, catalog.merged(added).to_json())
    wanted = analysis_cells(trained, chosen, examples)
    return _guarded(options, session, lambda: session.analyze(wanted), ranking=False)


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


def execute(
    options: RunOptions,
    made: Plan,
    changed: Mapping[str, ChangedAxis] | None = None,
    spec: dict[str, Any] | None = None,
) -> int:
    """Do a plan and report it.

    Args:
        options: Of the command.
        made: The plan.
        changed: The axis that each variant of an ablation changes, for the catalog.
        spec: For the spec file.
    """
    directory = named_data_dir(options)
    refuse_missing_device(made.cells)
    if options.probes:
        trained = [planned.cell for planned in made.quality]
        made.analysis += analysis_cells(trained, asked_probes(options.probes))
    store = open_store(options)
    kept = options.keep_models or bool(made.analysis)
    session = make_session(replace(options, keep_models=kept), store)
    tasks = {p.cell.task: p.shown_task for p in made.quality}
    write_catalog(options, store, made.names, tasks, changed=changed or {})
    store.write_json("plan.json", _plan_facts(options, made))
    store.write_json("spec.json", {**spec_of(options), **(spec or {"command": "run"})})
    for line in _lacking_lines(made, lacking_data(made.quality, directory)):
        click.echo(line, err=True)
    _announce(options, made, session)

    def work() -> None:
        if options.verify:
            session.certify([cell.variant for cell in made.cells], options.impl)
        session.train(made.quality)
        session.analyze(made.analysis)
        session.measure(made.speed, made.baseline)

    return _guarded(options, session, work)


def make_session(options: RunOptions, store: Store) -> Session:
    """A session with the options of the command line.

    Raises:
        UnknownName: `--retry` names no status.
    """
    for status in options.retry:
        if status not in STATUSES:
            raise UnknownName.among("status", status, STATUSES)
    settings = WorkerSettings(data_dir=options.data_dir, plugins=options.plugin)
    return Session(
        store,
        settings,
        jobs=options.jobs_at_once,
        inline=options.inline,
        retry=frozenset(status for status in STATUSES if status in options.retry),
        keep_models=options.keep_models,
    )


def _guarded(
    options: RunOptions, session: Session, work: Callable[[], None], *, ranking: bool = True
) -> int:
    """Run work and report; on an interrupt, say what is saved and how to go on."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        work()
    except KeyboardInterrupt:
        saved = len(session.store.finished())
        click.echo(
            f"\nstopped. {saved} finished cells are saved in {options.folder}; "
            f"go on with: {command_line()}",
            err=True,
        )
        return 130
    finally:
        session.store.close()
    return finish(options, session, ranking=ranking)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def finish(options: RunOptions, session: Session, *, ranking: bool = True) -> int:
    """Write the report, print the tables, and say what has no value and why.

    Args:
        options: Of the command.
        session: What ran.
        ranking: Whether to print who is ahead; not where models were only looked at.
    """
    from reports.folder import read_folder
    from reports.ranked_table.terminal import as_text
    from reports.render import write_report
    from reports.sections.data_sources import mixed_data, short_data
    from reports.sections.probes import probes_text

    tally = session.tally
    folder = read_folder(options.folder)
    written = write_report(folder)
    table = folder.ranked_lines
    warnings = [*mixed_data(folder).values(), *short_data(folder)]
    if options.as_json:
        click.echo(
            json.dumps(
                {
                    "folder": str(options.folder),
                    "report": str(written.html),
                    "counts": tally.counts,
                    "already_finished": tally.already,
                    "reasons": [
                        {"status": status, "reason": reason, "cells": count}
                        for (status, reason), count in sorted(tally.reasons.items())
                    ],
                    "warnings": warnings,
                    "table": json.loads(table.to_json(orient="records")),
                },
                indent=1,
            )
        )
    else:
        parts = [as_text(table, ranks=folder.catalog.ranks)] if ranking else []
        parts += [text] if (text := probes_text(folder)) else []
        for part in (*parts, *(f"warning: {warning}" for warning in warnings)):
            click.echo(f"{part}\n")
        for line in _why_without(tally):
            click.echo(line)
        counts = ", ".join(f"{count} {status}" for status, count in sorted(tally.counts.items()))
        click.echo(f"cells: {counts or 'none new'}{_finished_before(tally)}")
        click.echo(f"report: {written.html} (Markdown twin {written.markdown})")
    return 1 if tally.failed else 0


def _why_without(tally: Tally) -> list[str]:
    """Each reason once, the one of most cells first."""
    every = sorted(tally.reasons.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        f"{status.replace('_', ' ')}, {count} {'cell' if count == 1 else 'cells'}: {reason}"
        for (status, reason), count in every[:MOST_REASONS]
    ]
    if len(every) > MOST_REASONS:
        lines.append(f"{len(every) - MOST_REASONS} more reasons stand in the report.")
    return lines


def _finished_before(tally: Tally) -> str:
    if not tally.already:
        return ""
    refused = tally.before["refused"]
    again = f"; {refused} refused before; --retry refused asks them again" if refused else ""
    return f", {tally.already} were finished before{again}"


def cell_plan(options: RunOptions) -> Plan:
    """A plan of the cells whose labels were given.

    Raises:
        InvalidConfig: A label is of an older or newer revision of the code.
    """
    cells = [canonical_cell(parse_label(label)) for label in options.cells]
    made = Plan(options.request)
    baseline = resolve(options.baseline).canonical.show()
    made.baseline = baseline
    made.names = {cell.variant: parse(cell.variant).name for cell in cells}
    made.names.setdefault(baseline, options.baseline)
    for cell in cells:
        now = revisions_of(cell)
        if now != cell.revisions:
            raise InvalidConfig(
                f"this label is of other code ({cell.revisions}), here is {now}; "
                "copy a label that this version prints."
            )
        if cell.kind == "analysis":
            made.analysis.append(cell)
        ran = trained_cell(cell) if cell.kind == "analysis" else cell
        planned = PlannedCell(ran, 60.0, parse(ran.task).name)
        (made.speed if ran.kind == "speed" else made.quality).append(planned)
    return made


def _plan_facts(options: RunOptions, made: Plan) -> dict[str, Any]:
    return {
        "asked": spec_of(options),
        "cells": [cell.label for cell in made.cells],
        "left_out": [asdict(left) for left in made.left_out],
        "expected_s": round(made.seconds, 1),
    }


def write_catalog(
    options: RunOptions,
    store: Store,
    names: dict[str, str],
    tasks: dict[str, str],
    *,
    changed: Mapping[str, ChangedAxis] = MappingProxyType({}),
    study: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    trials: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write what a report must know of names, beside what earlier runs wrote."""
    found = catalog_of(
        names,
        tasks,
        baseline=resolve(options.baseline).canonical.show(),
        command=command_line(),
        preset=options.preset,
        ranks=find_preset(options.preset).ranks,
        plugins=options.plugin,
        **_places(options),
    )
    ablated = {
        variant: replace(found.variants[variant], ablation=change)
        for variant, change in changed.items()
        if variant in found.variants
    }
    found = replace(
        found, variants={**found.variants, **ablated}, study=dict(study), trials=dict(trials)
    )
    before = RunCatalog.from_json(store.read_json(CATALOG))
    store.write_json(CATALOG, before.merged(found).to_json())


class _Places(TypedDict):
    data_dir: str
    data_variable: str


def _places(options: RunOptions) -> _Places:
    """Who named the data directory: the command line, or the environment."""
    by_variable = not options.data_dir and data_folder() is not None
    return {"data_dir": options.data_dir, "data_variable": DATA_VARIABLE if by_variable else ""}


def _announce(options: RunOptions, made: Plan, session: Session) -> None:
    click.echo(
        f"{len(made.quality)} training cells and {len(made.speed)} speed cells into "
        f"{options.folder}, about {spoken(made.seconds)} on {session.jobs} processes; "
        f"{len(made.left_out)} left out.",
        err=True,
    )


def command_line() -> str:
    """The command as typed, for reports and for resuming."""
    return "python -m bench " + shlex.join(sys.argv[1:])
