"""What `run`, `plan`, `ablate` and `study` do once their options are read."""

import json
import os
import shlex
import signal
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from bench import ablate as ablations
from bench.api.cell import parse_label
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import load_package
from bench.api.resolve import resolve
from bench.catalog import catalog_of, merge_catalogs
from bench.executors.session import Session
from bench.executors.worker import WorkerSettings, load_plugins
from bench.plan import Plan, PlannedCell, Request, plan
from results.row import STATUSES
from results.store import Store


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Everything the command line says, as typed; also the content of spec.json."""

    variants: str = "all"
    tasks: str = ""
    backbone: str = ""
    slot: str = ""
    preset: str = "quick"
    seeds: int = 0
    first_seed: int = 0
    training: str = ""
    baseline: str = "scaled_dot"
    device: str = "cpu"
    dtype: str = "float32"
    impl: str = "auto"
    jobs: int = 0
    plugin: tuple[str, ...] = ()
    quality: bool = True
    speed: bool = True
    verify: bool = True
    cells: tuple[str, ...] = ()
    spec: str = ""
    out: str = ""
    data_dir: str = ""
    retry: tuple[str, ...] = ()
    keep_models: bool = False
    inline: bool = False
    as_json: bool = False

    @property
    def jobs_at_once(self) -> int:
        """Processes at once."""
        return self.jobs or os.cpu_count() or 1

    @property
    def request(self) -> Request:
        """What the planner reads."""
        return Request(
            variants=self.variants,
            tasks=self.tasks,
            backbone=self.backbone,
            slot=self.slot,
            preset=self.preset,
            seeds=self.seeds,
            first_seed=self.first_seed,
            protocol=self.training,
            baseline=self.baseline,
            device=self.device,
            dtype=self.dtype,
            impl=self.impl,
            jobs=self.jobs_at_once,
            speed=self.speed,
            quality=self.quality,
        )

    @property
    def folder(self) -> Path:
        """Where results go."""
        return Path(self.out or f"runs/{self.preset}")


def load_everything(plugins: tuple[str, ...]) -> None:
    """Fill the registry."""
    load_package("variants")
    load_package("tasks")
    load_plugins(plugins)


def run(options: RunOptions) -> int:
    """Plan, certify, train, time, report; returns the exit code."""
    options = read_spec(options)
    load_everything(options.plugin)
    made = cell_plan(options) if options.cells else plan(options.request)
    return execute(options, made, {})


def show_plan(options: RunOptions) -> None:
    """Print what a run would do."""
    load_everything(options.plugin)
    made = plan(options.request)
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
        f"about {made.seconds / 60:.0f} min with {made.request.jobs} jobs; "
        f"{len(made.left_out)} left out."
    )


def ablate(base: str, axis: str, options: RunOptions) -> int:
    """Run an ablation; returns the exit code."""
    load_everything(options.plugin)
    asked = ablations.ablation(base, axis)
    folder = options.out or f"runs/ablate-{resolve(base).name}-{axis}"
    options = replace(options, out=folder, speed=False)
    made = ablations.plan_ablation(options.request, asked, base)
    return execute(options, made, {"ablation": ablations.ablation_facts(asked)})


def study(options: RunOptions, tuning: dict[str, Any]) -> int:
    """Run studies; returns the exit code."""
    from bench.study import StudyRequest, run_studies

    load_everything(options.plugin)
    asked = StudyRequest(request=options.request, **tuning)
    options = replace(options, out=options.out or "runs/study")
    names = {spec.canonical.show(): name for name, spec in _asked(options)}
    store = Store.create(options.folder)
    session = make_session(options, store)

    def work() -> None:
        results = run_studies(asked, session)
        cells = [planned.cell for result in results for planned in result.finals]
        for result in results:
            for planned in result.finals:
                names.setdefault(planned.cell.variant, f"{result.variant} tuned")
        facts = {
            result.variant: {
                "trials": asked.trials,
                "best_trial": result.best_trial,
                "best_validation": round(result.best_value, 4),
                **result.parameters,
            }
            for result in results
        }
        tasks = {cell.task: asked.request.tasks for cell in cells}
        _write_catalog(options, store, names, tasks, {"study": facts})
        if options.verify:
            session.certify([cell.variant for cell in cells], options.impl)

    return _guarded(options, session, work)


def _asked(options: RunOptions) -> list[tuple[str, Any]]:
    from bench.plan import asked_variants

    return asked_variants(options.variants)


def execute(options: RunOptions, made: Plan, extra: dict[str, Any]) -> int:
    """Do a plan and report it."""
    store = Store.create(options.folder)
    session = make_session(options, store)
    tasks = {p.cell.task: p.shown_task for p in made.quality}
    _write_catalog(options, store, made.names, tasks, extra)
    store.write_json("plan.json", _plan_facts(options, made))
    store.write_json("spec.json", _spec(options))
    _announce(options, made, session)

    def work() -> None:
        if options.verify:
            session.certify([cell.variant for cell in made.cells], options.impl)
        session.train(made.quality)
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


def _guarded(options: RunOptions, session: Session, work: Any) -> int:
    """Run work; whatever interrupts it, say what is saved and write the report."""
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
    """A plan of the cells whose labels were given."""
    cells = [parse_label(label) for label in options.cells]
    made = Plan(options.request, plan(replace(options.request, variants=options.baseline)).preset)
    baseline = resolve(options.baseline).canonical.show()
    made.baseline = baseline
    made.names = {cell.variant: _short(cell.variant) for cell in cells}
    made.names.setdefault(baseline, options.baseline)
    for cell in cells:
        planned = PlannedCell(cell, 60.0, cell.task)
        (made.speed if cell.kind == "speed" else made.quality).append(planned)
    return made


def _short(variant: str) -> str:
    return variant.partition("[")[0]


def read_spec(options: RunOptions) -> RunOptions:
    """Take every option from a spec file; only where results go stays as typed.

    Raises:
        InvalidConfig: The file is not there or has unknown keys.
    """
    if not options.spec:
        return options
    path = Path(options.spec)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidConfig(
            f"cannot read the spec {path} ({error}); give the spec.json of a run folder."
        ) from error
    known = {field.name for field in fields(RunOptions)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise InvalidConfig(str(UnknownName.among(f"key in {path}", unknown[0], known)))
    listed: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
    }
    kept: dict[str, Any] = {
        "out": options.out,
        "data_dir": options.data_dir,
        "as_json": options.as_json,
    }
    return RunOptions(**{**listed, **{k: v for k, v in kept.items() if v}})


def _spec(options: RunOptions) -> dict[str, Any]:
    """The options that say what was asked; not where it went nor on how many cores."""
    left_out = ("spec", "out", "data_dir", "as_json", "jobs", "retry", "inline")
    return {key: value for key, value in asdict(options).items() if key not in left_out}


def _plan_facts(options: RunOptions, made: Plan) -> dict[str, Any]:
    return {
        "asked": _spec(options),
        "cells": [cell.label for cell in made.cells],
        "left_out": [asdict(left) for left in made.left_out],
        "expected_s": round(made.seconds, 1),
    }


def _write_catalog(
    options: RunOptions,
    store: Store,
    names: dict[str, str],
    tasks: dict[str, str],
    extra: dict[str, Any],
) -> None:
    found = catalog_of(
        names,
        tasks,
        baseline=resolve(options.baseline).canonical.show(),
        command=command_line(),
        preset=options.preset,
        ranks=options.preset != "smoke",
    )
    for variant, change in extra.pop("ablation", {}).items():
        if variant in found["variants"]:
            found["variants"][variant]["ablation"] = change
    found.update(extra)
    store.write_json("catalog.json", merge_catalogs(store.read_json("catalog.json"), found))


def _announce(options: RunOptions, made: Plan, session: Session) -> None:
    minutes = made.seconds / 60
    click.echo(
        f"{len(made.quality)} training cells and {len(made.speed)} speed cells into "
        f"{options.folder}, about {minutes:.0f} min on {session.jobs} processes; "
        f"{len(made.left_out)} left out.",
        err=True,
    )


def command_line() -> str:
    """The command as typed, for reports and for resuming."""
    return "python -m bench " + shlex.join(sys.argv[1:])
