"""`bench data`: list data sets, and download them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.command_group import BenchGroup
from bench.cli.light_start import light_start, need_real_packages

if TYPE_CHECKING:
    from bench.api.registry import Registration
    from bench.api.task import Task


@click.group("data", cls=BenchGroup)
def command() -> None:
    """List data sets, and download them."""


@command.command("list")
@options.data_directory
@light_start
def list_data_sets(data_dir: str) -> None:
    """List data sets, and which copy a run would read."""
    click.echo(data_sets(data_dir))


@command.command("fetch")
@click.argument("name")
@light_start
def fetch_data_set(name: str) -> None:
    """Download a data set from the hub.

    Its revision and hash are recorded beside it.
    """
    click.echo(fetch(name))


def data_sets(data_dir: str) -> str:
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
    rows = []
    for name, tasks in sorted(readers.items()):
        entry = FETCHABLE.get(name)
        if directory is not None and (directory / name).is_dir():
            where = str(directory / name)
        elif entry is not None and read_copy(name, None) is not None:
            where = "fetched copy in the cache"
        else:
            where = f"not here; {fetch_command(name)}" if entry else "not here; no hub copy"
        licenses = (
            [entry.license] if entry else [task.target.data_license.name for task in tasks[:1]]
        )
        used = ", ".join(task.name for task in tasks)
        rows.append([name, used, entry.dataset if entry else "", *licenses, where])
    heads = ["data set", "tasks", "hub id", "license", "where"]
    return tabulate(rows, heads, tablefmt="simple", maxcolwidths=[None, 30, None, 50, None])


def fetch(name: str) -> str:
    """Download a data set from the hub.

    Raises:
        UnknownName: No data set of this name can be fetched.
        DataUnavailable: The data directory that the environment names is not there.
    """
    from bench.api.data_folder import DATA_VARIABLE, data_folder
    from tasks.data import hub, hub_copies, hub_sets

    hub_sets.find_data_set(name)
    directory = data_folder()
    need_real_packages()
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
