"""`bench study`: tune variants with equal budgets."""

import sys
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions
    from bench.study_request import StudyRequest


@click.command("study")
@click.option("--variants", default="", help="Variants to tune, as selectors separated by commas.")
@options.selection
@click.option("--trials", default=8, show_default=True, help="Trials of every variant.")
@click.option(
    "--trial-seconds", default=0.0, help="Training time of a trial (CPU s). 0: the task's steps."
)
@click.option("--sampler", default="random", show_default=True, help="random, qmc or tpe.")
@click.option(
    "--storage",
    default="",
    metavar="URL",
    help="Optuna storage. Default: a file in the run folder.",
)
@click.option(
    "--final-seeds", default=3, show_default=True, help="New seeds that rerun each best trial."
)
@options.running
@light_start
def command(
    trials: int,
    trial_seconds: float,
    sampler: str,
    storage: str,
    final_seeds: int,
    **given: Any,
) -> None:
    """Tune variants with equal budgets; rerun each best trial on new seeds."""
    from bench.cli.run_options import RunOptions

    tuning = {
        "trials": trials,
        "trial_seconds": trial_seconds,
        "sampler": sampler,
        "storage": storage,
        "final_seeds": final_seeds,
    }
    sys.exit(study(RunOptions(**given), tuning))


def study(options: "RunOptions", tuning: dict[str, Any]) -> int:
    """Run studies; returns the exit code."""
    from bench.running.quality_cells import sized_task
    from bench.running.request import asked_variants

    options, asked, tuning = _checked(options, tuning)
    options = replace(options, out=options.out or "runs/study")
    variants = asked_variants(options.variants)
    task, _, shown = sized_task(options.tasks, options.preset)
    need_real_packages()
    from bench.api.resolve import resolve
    from bench.cli.execution import guarded, make_session, open_store
    from bench.cli.spec_file import spec_of
    from bench.cli.written_catalog import write_catalog
    from bench.running.devices import refuse_missing_device
    from bench.study import run_studies, study_facts

    refuse_missing_device(options.device)
    names = {spec.canonical.show(): name for name, spec in variants}
    names.setdefault(resolve(options.baseline).canonical.show(), options.baseline)
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

    return guarded(options, session, work)


def _checked(
    options: "RunOptions", tuning: dict[str, Any]
) -> "tuple[RunOptions, StudyRequest, dict[str, Any]]":
    """The options and the study, from the command line or the spec file.

    Raises:
        InvalidConfig: No variants are named, or the spec file already says what was typed.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.registered import load_registry
    from bench.cli.spec_file import read_spec, refuse_beside_spec
    from bench.study_request import StudyRequest

    options, asked_before = read_spec(options, "study")
    if options.variants == "":
        raise InvalidConfig("study: give --variants, or --spec.")
    if asked_before:
        changed = [f.name for f in fields(StudyRequest) if tuning.get(f.name, "") != f.default]
        refuse_beside_spec(name for name in changed if name in tuning)
        tuning = asked_before["tuning"]
    load_registry(options.plugin)
    _ = options.data_directory  # one that is not there is refused before anything runs
    return options, StudyRequest(request=options.request, **tuning), tuning
