"""`bench data`: list data sets, and download them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import option_groups as options
from bench.cli.command_group import BenchGroup
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.api.registry import Registration
    from bench.api.task import Task


ABSENT = "not here"
"""How the place of a data set begins that a run would not find."""


@click.group("data", cls=BenchGroup)
def command() -> None:
    """List data sets, and download them."""


@command.command("list")
@options.data_directory
@options.json_output
@light_start
def list_data_sets(data_dir: str, as_json: bool) -> None:
    """List data sets, and which copy a run would read."""
    click.echo(data_sets(data_dir, as_json=as_json))


@command.command("fetch")
@click.argument("name")
@light_start
def fetch_data_set(name: str) -> None:
    """Download a data set from the hub.

    Its revision and hash are recorded beside it.
    """
    click.echo(fetch(name))


def data_sets(data_dir: str, *, as_json: bool = False) -> str:
    """Data sets, and what a run would use now."""
    from tabulate import tabulate

    from bench.api import registry
    from bench.api.data_folder import data_folder
    from bench.api.task import TASKS
    from bench.cli.registered import load_registry
    from tasks.data.hub_copies import read_copy
    from tasks.data.hub_sets import FETCHABLE, fetch_command

    load_registry(())
    directory = data_folder(Path(data_dir) if data_dir else None)
    readers: dict[str, list[Registration[type[Task]]]] = {name: [] for name in FETCHABLE}
    for task in registry.registrations(TASKS).values():
        for name in task.target.data_sets:
            readers.setdefault(name, []).append(task)
    rows: list[dict[str, Any]] = []
    for name, tasks in sorted(readers.items()):
        entry = FETCHABLE.get(name)
        if directory is not None and (directory / name).is_dir():
            where = str(directory / name)
        elif entry is not None and read_copy(name, None) is not None:
            where = "fetched copy in the cache"
        else:
            where = f"{ABSENT}; {fetch_command(name) if entry else 'no hub copy'}"
        rows.append(
            {
                "data_set": name,
                "tasks": [task.name for task in tasks],
                "hub_id": entry.dataset if entry else "",
                "license": entry.license if entry else tasks[0].target.data_license.name,
                "here": not where.startswith(ABSENT),
                "where": where,
            }
        )
    if as_json:
        return json.dumps(rows, indent=1)
    heads = ["data set", "tasks", "hub id", "license", "where"]
    shown = [
        [row["data_set"], ", ".join(row["tasks"]), row["hub_id"], row["license"], row["where"]]
        for row in rows
    ]
    return tabulate(shown, heads, tablefmt="simple", maxcolwidths=[None, 30, None, 50, None])


def fetch(name: str) -> str:
    """Download a data set from the hub.

    Raises:
        UnknownName: No data set of this name can be fetched.
        DataUnavailable: The data directory that the environment names is not there.
    """
    from bench.api.data_folder import DATA_VARIABLE, data_folder
    from tasks.data import hub, hub_copies, hub_sets

    entry = hub_sets.find_data_set(name)
    directory = data_folder()
    need_real_packages()
    click.echo(f"fetching {entry.dataset} into {hub_copies.copy_folder(name)}", err=True)
    folder = hub.fetch(name)
    copy = hub_copies.read_copy(name)
    assert copy is not None, "a fetched copy can be read"
    told = f"{name}: revision {copy.revision}, {len(copy.files)} files in {folder}"
    if hub_copies.UNPINNED in copy.revision:
        told += (
            "\nWarning: no commit of this data set is pinned here, so another machine may fetch "
            "other data; compare the revisions that reports print."
        )
    if directory is not None and (directory / name).is_dir():
        told += (
            f"\nWarning: runs read {directory / name} and not this copy, because {DATA_VARIABLE} "
            "is set; unset it to use what was fetched."
        )
    return told
