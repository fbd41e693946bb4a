"""`bench plan`: show what a run would do, without doing it."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start

if TYPE_CHECKING:
    from bench.cli.run_options import RunOptions
    from bench.running.left_out import LeftOut
    from bench.running.plan import Plan
    from bench.running.quality_cells import PlannedCell

MOST_LEFT_OUT = 3
"""Of what is left out for one reason, so many are written out with a command each."""


OF_RUNS_ALONE = ("variants", "baseline", "quality", "speed", "shape")
"""Options that `bench ablate` lacks."""
SAID_OF_ABLATIONS = ("--quality", "--no-speed")
"""Of these, what it does without them: it trains, and times nothing."""


@click.command("plan")
@click.option("--variants", default="all", show_default=True, help=options.VARIANTS)
@options.what_to_change
@options.selection
@options.baseline
@options.quality
@options.speed
@options.shapes
@options.data_directory
@options.json_output
@light_start
@options.run_options
def command(asked: "RunOptions", base: str, axis: str) -> None:
    """Show what a run would do, without doing it.

    With --base and --axis it shows what `bench ablate` would do.
    """
    if base or axis:
        _refuse_no_ablation(base, axis)
    click.echo(plan_text(asked, base, axis))


def _refuse_no_ablation(base: str, axis: str) -> None:
    """Refuse half of what an ablation needs, and options that it does not have.

    Raises:
        InvalidConfig: One of the two is missing, or there is another option too many.
    """
    from bench.api.errors import InvalidConfig
    from bench.cli.spec_file import typed_options

    if not (base and axis):
        raise InvalidConfig("plan: give --base and --axis together, or neither.")
    for name, typed in typed_options().items():
        if name in OF_RUNS_ALONE and typed not in SAID_OF_ABLATIONS:
            raise InvalidConfig(
                f"plan: --base and --axis plan an ablation, which has no {typed}; leave it out, or "
                "leave out the two."
            )


def plan_text(options: "RunOptions", base: str = "", axis: str = "") -> str:
    """What a run with these options would do.

    Args:
        options: Of the command.
        base: The variant that an ablation changes; empty for a run.
        axis: The axis on which it changes it.
    """
    from bench.ablate import planned
    from bench.cli.registered import load_registry
    from bench.running.devices import refuse_missing_device
    from bench.running.missing_data import lacking_data, missing_data
    from bench.running.plan import plan

    load_registry(options.plugin)
    if base:
        options, _, made = planned(base, axis, options)
    else:
        made = plan(options, missing_data(options, options.data_directory))
    for cell in made.cells:
        refuse_missing_device(cell.device)
    lacking = lacking_data(made.quality, options.data_directory)
    refused = {one.cell.label: one.refused for one in made.quality if one.refused}
    if options.as_json:
        return _as_json(made, lacking, refused)
    return _as_lines(made, lacking)


def _as_json(made: "Plan", lacking: Mapping[str, str], refused: Mapping[str, str]) -> str:
    return json.dumps(
        {
            "cells": [{"id": c.id, "label": c.label} for c in made.cells],
            "left_out": [asdict(left) for left in made.left_out],
            "no_data": lacking,
            "refused": refused,
            "expected_s": round(made.seconds, 1),
        },
        indent=1,
    )


def _as_lines(made: "Plan", lacking: Mapping[str, str]) -> str:
    from bench.running.durations import spoken
    from bench.running.presets import find_preset
    from reports.numbers import counted

    preset = find_preset(made.request.preset)
    lines = [f"preset {preset.name}: {preset.summary}\n"]
    lines += _added(made)
    lines += [_by_task(made)] if made.cells else []
    lines += _left_out(made)
    lines += lacking_lines(made, lacking)
    lines += _refused_lines(made)
    blind = sum(planned.cell.task in lacking for planned in made.quality)
    refused = sum(bool(planned.refused) for planned in made.quality)
    notes = [f"{blind} of them without data"] if blind else []
    notes += [f"{refused} of them refused"] if refused else []
    told = f" ({', '.join(notes)})" if notes else ""
    lines.append(
        f"{len(made.quality)} training{told} and {len(made.speed)} speed cells, "
        f"about {spoken(made.seconds)} with {counted(made.request.jobs, 'job')}; "
        f"{len(made.left_out)} left out."
    )
    return "\n".join(lines)


def _added(made: "Plan") -> list[str]:
    """A line that names what runs beside the variants that were asked for; none without such."""
    from bench.running.quality_cells import uniform_baselines

    baseline = made.baseline.canonical.show()
    roles = {**dict.fromkeys(uniform_baselines(), "control"), baseline: "baseline"}
    planned = {cell.variant for cell in made.cells}
    asked = {spec.canonical.show() for _, spec in made.request.specs}
    added = [
        f"{role} {made.variants[name].text}"
        for name, role in roles.items()
        if name in planned - asked
    ]
    are = "is" if len(added) == 1 else "are"
    return [f"{' and '.join(added)} {are} added\n"] if added else []


def _left_out(made: "Plan") -> list[str]:
    """A line for each, and one for many that have the same reason."""
    reasons: dict[str, list[LeftOut]] = {}
    for left in made.left_out:
        reasons.setdefault(left.reason.rstrip("."), []).append(left)
    lines = []
    for reason, those in reasons.items():
        shown = those if len(those) <= MOST_LEFT_OUT else those[:1]
        lines += [
            "; ".join(filter(None, (f"left out: {left.label}: {reason}", left.command)))
            for left in shown
        ]
        if rest := len(those) - len(shown):
            lines.append(f"left out: {rest} more for this reason; --json lists them all")
    return lines


def _refused_lines(made: "Plan") -> list[str]:
    """A line for each variant and task."""
    lines: dict[str, None] = {}
    for planned in made.quality:
        if planned.refused:
            task = planned.task.text if planned.task else planned.cell.task
            variant = planned.shown_variant or planned.cell.variant
            lines[f"will be refused: {variant} on {task}: {planned.refused}"] = None
    return [*lines]


def _by_task(made: "Plan") -> str:
    """A line for each task and for each regime that is timed: how much, and for how long."""
    from tabulate import tabulate

    from bench.running.durations import spoken

    groups: dict[str, list[PlannedCell]] = {}
    for planned in made.quality:
        groups.setdefault(planned.task.text if planned.task else "", []).append(planned)
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
    table = tabulate(rows, heads, tablefmt="simple", colalign=["left", *["right"] * 4])
    return f"{table}\n"


def lacking_lines(made: "Plan", lacking: Mapping[str, str]) -> list[str]:
    """A sentence for each task that was named and has no data here."""
    names = {planned.cell.task: planned.task.text for planned in made.quality if planned.task}
    return [
        f"no data: {names[task]}: {reason.rstrip('.')}; its cells will be refused"
        for task, reason in lacking.items()
    ]
