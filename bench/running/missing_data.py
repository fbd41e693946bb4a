"""Which tasks of a run of everything have no data on this machine.

A plan is pure, so the data on this machine are looked up here and given to it.
"""

from collections.abc import Iterable
from pathlib import Path

from bench.api import registry
from bench.api.cache import cache_folder
from bench.api.config import build_config
from bench.api.data_folder import data_folder
from bench.api.errors import DataUnavailable
from bench.api.selector import Selector
from bench.api.task import TASKS
from bench.running.comparison_cells import task_groups
from bench.running.quality_cells import PlannedCell, sized_task
from bench.running.request import Request
from tasks.data.paths import place_of


def missing_data(request: Request, data_dir: Path | None = None) -> dict[str, str]:
    """Name the tasks that a preset of comparisons cannot run here; why not, in the loader's words.

    A task that was asked for by name is not among them: its rows say what is missing. Nothing is
    missing where nothing is trained.

    Args:
        request: What was asked for.
        data_dir: The directory, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.

    Raises:
        DataUnavailable: the data directory that was named is no folder.
    """
    if not (request.quality and request.size.comparisons) or request.tasks:
        return {}
    asked = [task for group in task_groups(request) for task in group]
    reasons = {task.name: _reason(task, request.preset, data_dir) for task in asked}
    return {name: reason for name, reason in reasons.items() if reason}


def lacking_data(planned: Iterable[PlannedCell], data_dir: Path | None = None) -> dict[str, str]:
    """Tasks of a plan whose cells will be refused here for want of data, and why.

    Their cells stay in the plan, for they were asked for by name: their rows say what is missing.

    Args:
        planned: Training cells.
        data_dir: The directory, as of `--data-dir`; None looks into `BENCH_DATA_DIR`.

    Raises:
        DataUnavailable: the data directory that was named is no folder.
    """
    tasks = {one.cell.task: one.task.selector for one in planned if one.task}
    reasons = {text: _missing(task, data_dir) for text, task in tasks.items()}
    return {task: reason for task, reason in reasons.items() if reason}


def _reason(task: Selector, preset: str, data_dir: Path | None) -> str:
    """Why a task of a preset's size has no data; empty if it has.

    It goes into the plan and with it into published reports, so no path of a machine is in it.
    """
    reason = _missing(sized_task(task, preset)[0], data_dir)
    directory = data_folder(data_dir)
    reason = reason.replace(f"at {cache_folder()}/", "in the cache folder ")
    for path, name in ((directory, "the data directory"), (cache_folder(), "the cache")):
        reason = reason.replace(str(path), name) if path is not None else reason
    return reason


def _missing(task: Selector, data_dir: Path | None) -> str:
    """Why a task has no data; empty if it has."""
    found = registry.find(TASKS, task.name)
    needs = found.target.needs_of(build_config(found.config, task.options, task.name))
    sets = found.target.data_sets
    if all(place_of(name, data_dir, needs=needs.get(name, "")) for name in sets):
        return ""
    try:
        # a folder that is not there may be one that the options of this size do not need
        registry.make(TASKS, task, 0, data_dir)
    except DataUnavailable as error:
        return " ".join(str(error).split())
    return ""
