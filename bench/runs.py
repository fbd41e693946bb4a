"""What `run`, `plan`, `ablate` and `study` do once their options are read."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import click

from bench import ablate as ablations
from bench.api.cell import cell_from_dict, parse_label
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import load_package
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.catalog import catalog_of, merge_catalogs, metric_facts
from bench.executors.progress import spoken
from bench.executors.session import Session
from bench.executors.worker import WorkerSettings, load_plugins
from bench.missing_data import missing_data
from bench.options import RunOptions, read_spec, refuse_beside_spec, spec_of
from bench.plan import Plan, PlannedCell, asked_variants, plan, revisions_of, sized_task
from bench.presets import find_preset
from bench.train.analysis import analysis_cells, asked_instruments, model_path, trained_cell
from results.row import STATUSES
from results.store import Store


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
    missing = _missing(options)
    for task, reason in missing.items():
        click.echo(f"left out: {task}: {reason}", err=True)
    return execute(options, plan(options.request, missing))


def _missing(options: RunOptions) -> dict[str, str]:
    """Tasks without data in the mirror that was named."""
    return missing_data(options.request, Path(options.data_dir) if options.data_dir else None)


def show_plan(options: RunOptions) -> None:
    """Print what a run would do."""
    load_everything(options.plugin)
    made = plan(options.request, _missing(options))
    if options.as_json:
        click.echo(
            json.dumps(
                {
                    "cells": [{"id": c.id, "label": c.label} for c in made.cells],
                    "left_out": [asdict(left) for left in made.left_out],
                    "expected_s": round(made.seconds, 1),
                },
                indent=1,
            )
        )
        return
    for planned in (*made.quality, *made.speed):
        click.echo(planned.cell.label)
    for left in made.left_out:
        click.echo(f"left out: {left.label}: {left.reason}; {left.command}")
    click.echo(
        f"{len(made.quality)} training and {len(made.speed)} speed cells, "
        f"about {spoken(made.seconds)} with {made.request.jobs} jobs; "
        f"{len(made.left_out)} left out."
    )


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
    return execute(options, made, {"ablation": ablations.ablation_facts(asked)}, spec)


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
    asked = StudyRequest(request=options.request, **tuning)
    options = replace(options, out=options.out or "runs/study")
    names = {spec.canonical.show(): name for name, spec in asked_variants(options.variants)}
    task, _, shown = sized_task(options.tasks, options.preset)
    store = open_store(options)
    session = make_session(options, store)
    write_catalog(options, store, names, {task.show(): shown}, {})
    store.write_json("spec.json", {**spec_of(options), "command": "study", "tuning": tuning})

    def work() -> None:
        results = run_studies(asked, session)
        finals = [(r.variant, planned.cell) for r in results for planned in r.finals]
        for variant, cell in finals:
            names.setdefault(cell.variant, f"{variant} tuned")
        facts = study_facts(asked, results)
        trials = {variant: result.variant for result in results for variant in result.tried}
        extra = {"study": facts, "trials": trials}
        write_catalog(options, store, names, {task.show(): shown}, extra)
        if options.verify:
            session.certify([cell.variant for _, cell in finals], options.impl)

    return _guarded(options, session, work)


def analyze(folder: Path, instruments: str, examples: int, options: RunOptions) -> int:
    """Look at every model that a run kept; returns the exit code.

    Raises:
        NotARunFolder: The folder has no ledger.
        InvalidConfig: The run kept no models.
    """
    load_everything(options.plugin)
    chosen = asked_instruments(instruments)
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
    options = replace(options, out=str(folder))
    session = make_session(options, store)
    catalog = store.read_json("catalog.json") or {}
    store.write_json("catalog.json", merge_catalogs(catalog, {"metrics": metric_facts([])}))
    wanted = analysis_cells(trained, chosen, examples)
    return _guarded(options, session, lambda: session.analyze(wanted))


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
    extra: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
) -> int:
    """Do a plan and report it; `extra` goes to the catalog and `spec` to the spec file."""
    if options.instruments:
        trained = [planned.cell for planned in made.quality]
        made.analysis += analysis_cells(trained, asked_instruments(options.instruments))
    store = open_store(options)
    kept = options.keep_models or bool(made.analysis)
    session = make_session(replace(options, keep_models=kept), store)
    tasks = {p.cell.task: p.shown_task for p in made.quality}
    write_catalog(options, store, made.names, tasks, extra or {})
    store.write_json("plan.json", _plan_facts(options, made))
    store.write_json("spec.json", {**spec_of(options), **(spec or {"command": "run"})})
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
    if options.data_dir:
        os.environ["BENCH_DATA_DIR"] = options.data_dir
    settings = WorkerSettings(data_dir=options.data_dir, plugins=options.plugin)
    return Session(
        store,
        settings,
        jobs=options.jobs_at_once,
        inline=options.inline,
        retry=frozenset(status for status in STATUSES if status in options.retry),
        keep_models=options.keep_models,
    )


def _guarded(options: RunOptions, session: Session, work: Callable[[], None]) -> int:
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
    return finish(options, session)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def finish(options: RunOptions, session: Session) -> int:
    """Write the report, print the table, and say what failed."""
    from reports.render import render
    from reports.tables import as_text, ranked_table
    from results.frame import load

    tally = session.tally
    written = render(options.folder)
    frame = load(options.folder)
    catalog = session.store.read_json("catalog.json") or {}
    certificates = session.store.read_json("certificates.json") or {}
    table = ranked_table(frame, catalog, certificates)
    if options.as_json:
        click.echo(
            json.dumps(
                {
                    "folder": str(options.folder),
                    "report": str(written.html),
                    "counts": tally.counts,
                    "already_finished": tally.already,
                    "table": json.loads(table.to_json(orient="records")),
                },
                indent=1,
            )
        )
    else:
        click.echo(as_text(table))
        counts = ", ".join(f"{count} {status}" for status, count in sorted(tally.counts.items()))
        before = f", {tally.already} were finished before" if tally.already else ""
        click.echo(f"\ncells: {counts or 'none new'}{before}")
        click.echo(f"report: {written.html} (Markdown twin {written.markdown})")
    return 1 if tally.failed else 0


def cell_plan(options: RunOptions) -> Plan:
    """A plan of the cells whose labels were given.

    Raises:
        InvalidConfig: A label is of an older or newer revision of the code.
    """
    cells = [parse_label(label) for label in options.cells]
    made = Plan(options.request, find_preset(options.preset))
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
    extra: dict[str, Any],
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
    )
    for variant, change in extra.get("ablation", {}).items():
        if variant in found["variants"]:
            found["variants"][variant]["ablation"] = change
    found.update({key: value for key, value in extra.items() if key != "ablation"})
    store.write_json("catalog.json", merge_catalogs(store.read_json("catalog.json"), found))


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
