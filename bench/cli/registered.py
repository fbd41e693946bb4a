"""Fill the registry with everything that a command may name."""

from pathlib import Path

import click

from bench.api import registry
from bench.api.axes import AXES
from bench.api.loading import load_package, load_plugin, loaded_plugins


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


def _counted() -> int:
    """Names on all axes."""
    return sum(len(registry.registrations(axis)) for axis in AXES)


def _registered_by(path: str) -> bool:
    """Whether a file that was loaded before registered something."""
    module = next((name for name, one in loaded_plugins().items() if one.path.samefile(path)), None)
    entries = (one for axis in AXES for one in registry.registrations(axis).values())
    return any(one.module == module for one in entries)
