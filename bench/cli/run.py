"""`bench run`: run variants on tasks, time them, and write a report."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions
    from bench.running.plan import Plan


OTHER_COMMANDS = {
    "exact": "`bench claims run` computes those of claims",
    "trial": "`bench study` and `bench calibrate` train those",
}
"""Kinds of cells that no run has, and where they come from."""
SAID_BY_CELL = (
    "variants",
    "tasks",
    "backbone",
    "slot",
    "minutes",
    "seeds",
    "first_seed",
    "training",
    "device",
    "dtype",
    "impl",
    "shape",
    "quality",
    "speed",
)
"""Options that the label of a cell has answered."""
LEAST_AGAIN_S = 60.0
"""Least expected of a cell that another machine has run (s): this one may be busy."""


@click.command("run")
@click.option("--variants", default="all", show_default=True, help=options.VARIANTS)
@options.selection
@options.baseline
@options.quality
@options.speed
@options.shapes
@click.option(
    "--match",
    default="",
    metavar="WHAT",
    help="Make every network as large as the baseline's, within 2%: params, flops, or time (of a "
    "training step on this machine).",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Check every variant with the conformance suite first. Default: on.",
)
@click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="LABEL",
    help="Run this cell alone, by its label. `bench plan --json` and details.md of a run print "
    "labels.",
)
@options.until
@options.probes
@options.reuse
@options.running
@light_start
@options.run_options
def command(asked: "RunOptions") -> None:
    """Run variants on tasks, time them, and write a report."""
    sys.exit(run(asked))


def run(options: "RunOptions") -> int:
    """Plan, certify, train, time, report; returns the exit code."""
    from bench.api.errors import InvalidConfig
    from bench.cli.budgets import jobs_of_budget, tell_of_budget
    from bench.cli.registered import load_registry
    from bench.cli.spec_file import read_spec
    from bench.running.missing_data import missing_data
    from bench.running.plan import plan

    options, _ = read_spec(options, "run")
    _refuse_places(options)
    load_registry(options.plugin)
    _ = options.looks  # wrong values end the command before anything is written
    if options.cells:
        _refuse_beside_cells()
        # beside a finished run and not in it, so that a cell of it is run again, and apart from
        # cells of presets that rank nothing
        options = replace(options, out=options.out or f"runs/cells-{options.preset}")
        if options.match:
            raise InvalidConfig("--cell says which network it has; leave --match out.")
        made = cell_plan(options)
    else:
        missing = missing_data(options, options.data_directory)
        made = plan(options, missing, jobs_of_budget(options))
    need_real_packages()
    if not options.cells:
        tell_of_budget(options, made)
        for task, reason in missing.items():
            click.echo(f"left out: {task}: {reason}", err=True)
        _refuse_nothing(made)
    from bench.cli.execution import execute

    return execute(options, _matched(options, made) if options.match else made)


def _matched(options: "RunOptions", made: "Plan") -> "Plan":
    """The plan with networks as large as the baseline's, once nothing else can be refused."""
    from contextlib import closing

    from bench.cli.execution import open_store, refuse_unfit
    from bench.running.matched_plan import match_plan
    from results.pack import open_run

    refuse_unfit(options, made)  # networks are timed for minutes
    reused = open_run(options.reuse) if options.reuse else None
    with closing(open_store(options)) as store:
        return match_plan(made, options.data_directory, store, reused)


def _refuse_places(options: "RunOptions") -> None:
    """Refuse places that cannot be used before names are loaded, which takes seconds.

    Raises:
        BenchError: One of them is no folder, no run, or holds something else.
    """
    from results.run_path import refuse_occupied, refuse_what_is_no_run

    _ = options.data_directory
    if options.reuse:
        refuse_what_is_no_run(options.reuse)
    if options.out:
        refuse_occupied(options.folder)


def _refuse_beside_cells() -> None:
    """Refuse options that the label of a cell has answered.

    Raises:
        InvalidConfig: Some were typed.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.spec_file import typed_options

    typed = [text for name, text in typed_options().items() if name in SAID_BY_CELL]
    if typed:
        raise InvalidConfig(f"--cell already says what to run; leave out {', '.join(typed)}.")


def _refuse_nothing(made: "Plan") -> None:
    """Say which of the named variants are not trained.

    Raises:
        InvalidConfig: Nothing is left to run.
    """
    from bench.api.errors import InvalidConfig
    from bench.running.comparison_cells import without_comparison

    named = {f"training of {one.text}" for one in without_comparison(made.request)}
    told = [one for one in made.left_out if one.label in named]
    if made.left_out and not made.cells:
        first = (told or made.left_out)[0]
        runs_it = f" This runs it: {first.command}" if first.command else ""
        raise InvalidConfig(f"nothing is left to run: {first.label}: {first.reason}.{runs_it}")
    if not made.cells:
        raise InvalidConfig(
            f"the preset {made.request.preset} times nothing, and --no-quality leaves out the "
            "rest; give --shape, or leave out --no-quality."
        )
    for one in told:
        click.echo(f"left out: {one.label}: {one.reason}", err=True)


def cell_plan(options: "RunOptions", before: Mapping[str, float] = MappingProxyType({})) -> "Plan":
    """A plan of the cells whose labels were given.

    Args:
        options: With the labels.
        before: What another run took for the cell of a label (s); the planner says it of others.

    Raises:
        InvalidConfig: A label is of an older or newer revision of the code, or of a cell that no
            run has.
    """
    from bench.api.cell import parse_label
    from bench.api.errors import InvalidConfig
    from bench.api.resolve import resolve
    from bench.api.selector import parse
    from bench.running.plan import Plan
    from bench.running.quality_cells import PlannedCell, expected_of_label
    from bench.running.request import AskedTask, AskedVariant
    from bench.running.revisions import canonical_cell, revisions_of
    from bench.running.speed_cells import timed_alone_s
    from bench.training.analysis import trained_cell

    made = Plan(options)
    for label in dict.fromkeys(options.cells):
        cell = canonical_cell(parse_label(label))
        if cell.kind in OTHER_COMMANDS:
            raise InvalidConfig(
                f"a run has no cell of kind {cell.kind}; {OTHER_COMMANDS[cell.kind]}."
            )
        now = revisions_of(cell)
        if now != cell.revisions:
            raise InvalidConfig(
                f"this label is of another revision of the code ({cell.revisions}), and this is "
                f"{now}; copy a label that this version prints."
            )
        if cell.kind == "analysis":
            made.analysis.append(cell)
        ran = trained_cell(cell) if cell.kind == "analysis" else cell
        spec = resolve(ran.variant)
        made.add([AskedVariant(spec.canonical.show(), spec)])
        if ran.kind == "speed":
            made.speed.append(PlannedCell(ran, timed_alone_s(ran, spec), spec))
        else:
            task, expected = parse(ran.task), expected_of_label(ran, spec, options.preset)
            seconds = max(LEAST_AGAIN_S, before[label]) if label in before else expected
            made.quality.append(PlannedCell(ran, seconds, spec, AskedTask(task.name, task)))
    made.add([options.asked_baseline])
    return made
