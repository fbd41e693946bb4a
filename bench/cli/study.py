"""`bench study`: tune variants with equal budgets."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions
    from bench.running.request import AskedVariant
    from bench.study import StudyResult
    from bench.study_request import StudyRequest, Tuning
    from reports.folder import RunFolder
    from results.store import Store


@click.command("study")
@click.option("--variants", default="", help="Variants to tune, as selectors separated by commas.")
@options.one_task
@click.option("--trials", default=8, show_default=True, help="Trials of every variant.")
@click.option(
    "--trial-seconds",
    default=0.0,
    help="Training time of a trial at most (CPU s, on a GPU wall s); the steps and the score that "
    "end a training of the task end it, too, and --training 'adam[steps=100000]' allows more. "
    "0: no limit.",
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
@options.run_options
def command(asked: "RunOptions", /, **typed: object) -> None:
    """Tune variants with equal budgets, then run new seeds."""
    from bench.study_request import Tuning

    sys.exit(study(asked, options.filled(Tuning, typed)))


def study(options: "RunOptions", tuning: "Tuning") -> int:
    """Run studies; returns the exit code.

    Args:
        options: What is tuned, and where.
        tuning: What each variant may spend, and how it is searched.
    """
    from bench.api.errors import InvalidConfig
    from bench.running.quality_cells import sized_task
    from bench.running.request import AskedTask

    if options.keep_old:
        raise InvalidConfig(
            "a study is of the code that runs it, so that trials of earlier code count for "
            "nothing; leave out --keep-old."
        )
    options, asked = _checked(options, tuning)
    options = replace(options, out=options.out or "runs/study")
    variants = asked.request.specs
    task, _, shown = sized_task(asked.task, options.preset)
    need_real_packages()
    from bench.cli.execution import guarded, make_session, open_store, refuse_other_preset
    from bench.cli.spec_file import spec_of, write_spec
    from bench.cli.written_catalog import write_catalog
    from bench.running.devices import refuse_missing_device
    from bench.running.durations import spoken
    from bench.study import expected_seconds, run_studies, study_facts
    from bench.study_request import Tuning
    from reports.numbers import counted
    from results.catalog import RunCatalog

    refuse_missing_device(options.device)
    tasks = [AskedTask(shown, task)]
    seconds = expected_seconds(asked)
    store = open_store(options)
    refuse_other_preset(options, store)
    _refuse_other_question(asked, store)
    session = make_session(options, store)
    write_catalog(options, store, variants, tasks, has_baseline=False)
    spent = {one.name: getattr(asked, one.name) for one in fields(Tuning)}
    write_spec(store, {**spec_of(options), "command": "study", "tuning": spent})
    click.echo(
        f"{counted(asked.trials, 'trial')} of {counted(len(asked.request.specs), 'variant')} each, "
        f"and {counted(asked.final_seeds, 'seed')} of each best one, into {options.folder}, about "
        f"{spoken(seconds / session.jobs)} on {counted(session.jobs, 'process', 'processes')}.",
        err=True,
    )

    def file(trials: "Mapping[str, str]") -> None:
        write_catalog(options, store, variants, tasks, trials=trials, has_baseline=False)

    def chosen(results: "Sequence[StudyResult]") -> None:
        before = RunCatalog.of(store).study
        facts = study_facts(asked, results, before)
        every = [*variants, *_finals(results)]
        write_catalog(options, store, every, tasks, study=facts, has_baseline=False)

    def work() -> None:
        finals = _finals(run_studies(asked, session, file, chosen))
        if options.verify:
            session.certify([spec for _, spec in finals], options.impl)

    return guarded(options, session, work, _shown)


def _refuse_other_question(asked: "StudyRequest", store: "Store") -> None:
    """Refuse a second question in one folder, whose report would mix the answers.

    Raises:
        InvalidConfig: A study in the folder was asked otherwise, be it of other variants.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.spec_file import stored_specs
    from results.json_values import as_object

    studies = [one for one in stored_specs(store) if one.get("command") == "study"]
    for held in studies:
        before = {**held, **as_object(held.get("tuning"))}
        for name, value in asked.question.items():
            if before.get(name, value) != value:
                raise InvalidConfig(
                    f"{store.folder} holds a study with {name}={before[name]!r}, and this one has "
                    f"{name}={value!r}; give another --out."
                )


def _shown(folder: "RunFolder") -> list[str]:
    """What a study shows: the comparison of the winners, and what was chosen for each variant."""
    from bench.cli.run_end import run_parts
    from reports.sections.studies import study_sentences

    where = "Numbers are rounded; the report has the exact settings under “Studies”."
    return [*run_parts(folder), "\n".join([*study_sentences(folder), where])]


def _finals(results: "Iterable[StudyResult]") -> "list[AskedVariant]":
    """The variants that the best trials made, as reports name them."""
    from bench.running.request import AskedVariant

    return [
        AskedVariant(planned.shown_variant, planned.spec)
        for result in results
        for planned in result.finals
    ]


def _checked(options: "RunOptions", tuning: "Tuning") -> "tuple[RunOptions, StudyRequest]":
    """The options and the study, from the command line or the spec file.

    Raises:
        InvalidConfig: No variants are named, or the spec file already says what was typed.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.registered import load_registry
    from bench.cli.spec_file import from_spec, read_spec
    from bench.study_request import StudyRequest, Tuning
    from results.json_values import as_object

    options, asked_before = read_spec(options, "study")
    if options.variants == "":
        raise InvalidConfig("study: give --variants, or --spec.")
    if asked_before:
        tuning = from_spec(Tuning(), as_object(asked_before.get("tuning")))
    load_registry(options.plugin)
    _ = options.data_directory  # one that is not there is refused before anything runs
    return options, StudyRequest(request=options, **vars(tuning))
