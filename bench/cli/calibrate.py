"""`bench calibrate`: find a size at which a task can tell, and learning rates, on validation."""

import math
import sys
import time
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from pathlib import Path

    from bench.api.calibration import Choice
    from bench.api.selector import Selector
    from bench.calibration_trials import Trials
    from bench.cli.run_options import RunOptions

TIME_IS_UP = "the time is up before a choice was made"
TOO_LONG = "a trial was ended, for it made no progress for a long time, so no choice was made"
LOST = "a trial has no value, for a cause outside of it ({why}), so no choice was made; mend that"


@click.command("calibrate")
@click.argument("task")
@click.option(
    "--minutes",
    default=0.0,
    help="Start no further trial after this time (minutes); the same command goes on. 0: no limit.",
)
@click.option("--preset", default="quick", show_default=True, help="Preset whose sizes are chosen.")
@click.option(
    "--keep",
    is_flag=True,
    help="Count the trials that are stored beside the task, and train only what is missing.",
)
@click.option(
    "--retime",
    is_flag=True,
    help="Keep the choice, and train only to measure what a cell takes, which plans count on; with "
    "nothing else running.",
)
@options.jobs
@options.out
@options.data_directory
@options.plugins
@options.inline
@light_start
@options.run_options
def command(asked: "RunOptions", task: str, keep: bool, retime: bool) -> None:
    """Choose the size of a task and learning rates on validation.

    Tries the settings that TASK declares, cheapest first, with seeds 100 to 104, and stores what
    it chose and why beside the task. Runs and plans use it from then on. Of a task that declares
    none the size stays, and learning rates alone are chosen.
    """
    sys.exit(calibrate(task, asked, keep=keep, retime=retime))


def calibrate(text: str, options: "RunOptions", *, keep: bool = False, retime: bool = False) -> int:
    """Calibrate one task; returns the exit code.

    Raises:
        InvalidConfig: The preset ranks nothing, the time makes no sense, or the task has less of
            its input, for which no choice is looked up.
    """
    from dataclasses import replace

    from bench.api.errors import InvalidConfig
    from bench.api.options import canonical
    from bench.api.selector import parse
    from bench.cli.registered import load_registry

    if not options.size.ranks:
        raise InvalidConfig(
            f"calibrate: the preset {options.preset} ranks nothing, so there is nothing to choose; "
            "leave out --preset, or name one that ranks, such as --preset quick."
        )
    load_registry(options.plugin)
    _ = options.data_directory  # one that is not there is refused before anything runs
    task = canonical("task", parse(text))
    _refuse_ablated_input(task)
    # to be timed again, what has ended is trained again
    retry = ("timeout", "ok") if retime else ("timeout",)
    options = replace(options, retry=retry, out=options.out or f"runs/calibrate/{task.name}")
    need_real_packages()
    from bench.api.calibration import keep_choice

    choice, why = _choose(task, options, keep=keep or retime, retime=retime)
    if why and retime:
        click.echo(
            f"{why}; the stored time of a cell stays, and the same command begins anew.", err=True
        )
        return 1
    if why:
        path = keep_trials(task, options.sizes, choice)
        click.echo(
            f"{why}; trials are kept in {options.folder}, and the same command goes on."
            + (
                f" They are stored in {path} as well, and --keep goes on from there."
                if path
                else ""
            ),
            err=True,
        )
        return 1
    path = keep_choice(task.name, choice)
    if retime:
        click.echo(f"{task.show()}: a cell takes {choice.seconds:g} s of CPU time")
        click.echo(f"stored in {path}", err=True)
        return 0
    click.echo(f"{task.show()}: {choice.chosen.name if choice.chosen else 'nothing chosen'}")
    click.echo(choice.why)
    for who, rate in choice.rates.items():
        click.echo(f"  lr {rate:g}  {who}")
    click.echo(f"stored in {path}", err=True)
    return 0


def _refuse_ablated_input(task: "Selector") -> None:
    """Refuse a task with less of its input: plans take what was chosen for the whole.

    Raises:
        InvalidConfig: It is one.
    """
    from bench.api.errors import InvalidConfig
    from bench.running.calibrated import whole_task

    whole = whole_task(task)
    if whole != task:
        raise InvalidConfig(
            f"calibrate: {task.show()} has less of its input, and plans take the size and the "
            f"rates of the whole; calibrate {whole.show()}."
        )


def keep_trials(task: "Selector", preset: str, unfinished: "Choice") -> "Path | None":
    """Store trials that led to no choice yet, unless an earlier choice or trials would be lost."""
    from bench.api.calibration import keep_choice, stored_choices

    held = [
        one for one in stored_choices(task.name) if (one.task, one.preset) == (task.show(), preset)
    ]
    if not unfinished.trials or any(one.chosen is not None for one in held):
        return None
    if any(trial not in unfinished.trials for one in held for trial in one.trials):
        return None
    return keep_choice(task.name, unfinished)


def _choose(
    task: "Selector", options: "RunOptions", *, keep: bool, retime: bool
) -> "tuple[Choice, str]":
    """Train what is missing, and choose; beside trials without a choice, why there is none yet."""
    from bench.api.calibration import stored_choices
    from bench.api.foreign_prints import prints_to_standard_error
    from bench.calibrate import Calibration
    from bench.calibration_trials import OutOfTime, Trials
    from bench.cli.execution import make_session, open_store

    preset = options.sizes
    store = open_store(options)
    session = make_session(options, store)
    until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    try:
        with prints_to_standard_error():
            # the trials count also where they led to no choice
            stored = stored_choices(task.name) if keep else ()
            mine = (one for one in stored if (one.task, one.preset) == (task.show(), preset))
            trials = Trials(task, preset, session, until, kept=next(mine, None))
            calibration = Calibration(trials)
            try:
                return calibration.timed_again() if retime else calibration.choose(), ""
            except OutOfTime:
                return calibration.unfinished(), _why_none(trials)
    finally:
        store.close()


def _why_none(trials: "Trials") -> str:
    """Why a calibration ended before a choice."""
    if trials.lost:
        return LOST.format(why=trials.lost.rstrip("."))
    return TOO_LONG if trials.too_long else TIME_IS_UP
