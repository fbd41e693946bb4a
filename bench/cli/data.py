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


BY_HAND = (
    "Copied by hand into the data directory, gzipped where the name ends in .gz; words in braces "
    "stand for one file each:"
)
"""Stands above the files of what is not here and no command fetches."""


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
    from bench.api.task import TASKS
    from bench.cli.registered import load_registry
    from tasks.data.hub_sets import FETCHABLE
    from tasks.data.originals import ORIGINALS
    from tasks.data.paths import place_of

    load_registry(())
    directory = Path(data_dir) if data_dir else None
    readers: dict[str, list[Registration[type[Task]]]] = {name: [] for name in FETCHABLE}
    for task in registry.registrations(TASKS).values():
        for name in task.target.data_sets:
            readers.setdefault(name, []).append(task)
    rows: list[dict[str, Any]] = []
    for name, tasks in sorted(readers.items()):
        entry = FETCHABLE.get(name)
        rows.append(
            {
                "data_set": name,
                "tasks": [task.name for task in tasks],
                "hub_id": entry.dataset if entry else "",
                "license": entry.license if entry else tasks[0].target.data_license.name,
                "here": place_of(name, directory) is not None,
                "where": _where(name, directory),
                "files": [line for one in ORIGINALS.get(name, ()) for line in one.lines()],
            }
        )
    if as_json:
        return json.dumps(rows, indent=1)
    heads = ["data set", "tasks", "hub id", "license", "where"]
    shown = [
        [row["data_set"], ", ".join(row["tasks"]), row["hub_id"], row["license"], row["where"]]
        for row in rows
    ]
    table = tabulate(shown, heads, tablefmt="simple", maxcolwidths=[None, 30, None, 50, None])
    absent = [row for row in rows if row["files"] and not row["here"]]
    copied = [f"  {row['data_set']}/{line}" for row in absent for line in row["files"]]
    return "\n".join((table, "", BY_HAND, *copied)) if copied else table


def _where(name: str, data_dir: Path | None) -> str:
    """The copy of a data set that a run would read, in words."""
    from tasks.data.hub_sets import FETCHABLE, fetch_command
    from tasks.data.paths import may_lack, place_of

    fetched = "fetched copy in the cache"
    place = place_of(name, data_dir)
    if place is None:
        return f"not here; {fetch_command(name) if name in FETCHABLE else 'copied by hand'}"
    if place.origin == "hub":
        return fetched
    whole = place_of(name, data_dir, needs=may_lack(name))
    if whole == place:
        return str(place.path)
    other = fetched if whole else f"not here; {fetch_command(name)}"
    return f"{place.path}; with {may_lack(name)}: {other}"


def fetch(name: str) -> str:
    """Download a data set from the hub.

    Raises:
        UnknownName: No data set of this name can be fetched.
        DataUnavailable: The data directory that the environment names is not there.
    """
    from bench.api.data_folder import DATA_VARIABLE
    from tasks.data import hub, hub_copies, hub_sets
    from tasks.data.paths import place_of

    entry = hub_sets.find_data_set(name)
    usual, whole = place_of(name), place_of(name, needs=entry.may_lack)
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
    if usual is not None and usual.origin == "directory":
        told += "\n" + (
            f"Warning: runs read {usual.path} and not this copy"
            if whole == usual
            else f"Runs that need {entry.may_lack} read this copy; others read {usual.path}"
        )
        told += f", because {DATA_VARIABLE} is set; unset it to use what was fetched."
    return told
