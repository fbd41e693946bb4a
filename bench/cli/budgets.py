"""Budgets that a run remembers: they hold more cells, the more processes they count with."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from bench.cli.light_start import need_real_packages
from bench.cli.run_options import RunOptions
from bench.running.request import Request
from results.json_values import Json, as_object, read_value
from results.run_path import SUFFIX
from results.stored_plan import PLAN, Budget, StoredPlan, stored_plan

if TYPE_CHECKING:
    from bench.running.plan import Plan

RUN = MappingProxyType({"command": "run"})
"""What a spec file says of a run beside its options."""
BESIDE_THE_QUESTION = ("jobs", "plugin", "data_dir")
"""Parts of a request that say on what it is done, and with which files."""


def budgets_of(options: RunOptions, made: "Plan", spec: Mapping[str, object]) -> list[Budget]:
    """What a run folder shall remember of a plan; nothing of cells that were named one by one.

    Args:
        options: Of the command.
        made: The plan.
        spec: What the spec file says beside the options.
    """
    return [Budget(asked=_asked(options, spec), jobs=made.jobs)] if made.jobs else []


def jobs_of_budget(options: RunOptions, spec: Mapping[str, object] = RUN) -> int:
    """Processes that the same question counted with when it was planned first; 0 for none.

    A budget holds more cells the more cores there are. A run that goes on on another machine, or
    in another folder with `--reuse`, shall have the cells that it began with.

    Args:
        options: Of the command.
        spec: What the spec file says beside the options.
    """
    asked = _asked(options, spec)
    budgets = (one for plan in _plans(options) for one in plan.get("budgets", ()))
    return next((one["jobs"] for one in budgets if one["asked"] == asked), 0)


def tell_of_budget(options: RunOptions, made: "Plan") -> None:
    """Say where a budget counts with other processes than there are now."""
    if made.jobs != options.jobs and math.isfinite(made.room_s):
        click.echo(f"planned for {made.jobs} processes, as when this run began.", err=True)


def _asked(options: RunOptions, spec: Mapping[str, object]) -> dict[str, Json]:
    """What decides which cells are planned; not what only changes how they are run or reported."""
    names = [one.name for one in fields(Request) if one.name not in BESIDE_THE_QUESTION]
    asked = {**spec, **{name: getattr(options, name) for name in names}}
    return dict(as_object(read_value(json.dumps(asked))))


def _plans(options: RunOptions) -> Iterator[StoredPlan]:
    """The plan of the run folder, and that of the run whose cells are taken."""
    yield _plan_in(options.folder)
    if Path(options.reuse).suffix == SUFFIX:
        need_real_packages()
        from results.pack import Pack

        yield stored_plan(as_object(Pack(options.reuse).read_json(PLAN)))
    elif options.reuse:
        yield _plan_in(Path(options.reuse))


def _plan_in(folder: Path) -> StoredPlan:
    """What a run folder says; nothing where it cannot be read, which is told when it is written."""
    try:
        held = read_value((folder / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        held = None
    return stored_plan(as_object(held))
