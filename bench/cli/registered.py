"""Fill the registry with everything that a command may name."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.api import registry
from bench.api.axes import AXES
from bench.api.errors import InvalidConfig
from bench.api.loading import load_package, load_plugin, loaded_plugins
from results.catalog import RunCatalog

if TYPE_CHECKING:
    from results.pack import Pack
    from results.store import Store


def load_registry(plugins: tuple[str, ...]) -> None:
    """Import all variants and tasks, and then the plug-in files."""
    load_package("variants")
    load_package("tasks")
    if plugins:
        from bench.cli.trial_import import refuse_deadly_plugin
    for path in plugins:
        if Path(path).is_file():
            refuse_deadly_plugin(Path(path))
        before = _counted()
        load_plugin(Path(path))
        if _counted() == before and not _registered_by(path):
            click.echo(
                f"warning: {path} registers nothing; decorate a class of it with @register, "
                "as the files of `bench new` do.",
                err=True,
            )


def refuse_without_plugins(run: "Store | Pack", given: tuple[str, ...]) -> None:
    """Refuse to go on with cells of a run whose plug-ins are not loaded.

    Raises:
        InvalidConfig: The run had a plug-in, and no file of that name was given.
    """
    here = {Path(path).name for path in given}
    had = RunCatalog.of(run).plugins
    missing = [path for path in had if Path(path).name not in here]
    if missing:
        words = " ".join(f"--plugin {shlex.quote(path)}" for path in missing)
        raise InvalidConfig(f"{run.folder} was made with code of a plug-in; give {words}, too.")


def _counted() -> int:
    """Names on all axes."""
    return sum(len(registry.registrations(axis)) for axis in AXES)


def _registered_by(path: str) -> bool:
    """Whether a file that was loaded before registered something."""
    module = next((name for name, one in loaded_plugins().items() if one.path.samefile(path)), None)
    entries = (one for axis in AXES for one in registry.registrations(axis).values())
    return any(one.module == module for one in entries)
