"""Fill the registry with everything that a command may name."""

from pathlib import Path

from bench.api.loading import load_package, load_plugin


def load_registry(plugins: tuple[str, ...]) -> None:
    """Import all variants and tasks, and then the plug-in files."""
    load_package("variants")
    load_package("tasks")
    if plugins:
        from bench.cli.trial_import import refuse_deadly_plugin
    for path in plugins:
        if Path(path).is_file():
            refuse_deadly_plugin(Path(path))
        load_plugin(Path(path))
