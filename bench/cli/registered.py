"""Fill the registry with everything that a command may name."""

from pathlib import Path

from bench.api.loading import load_package, load_plugin


def load_registry(plugins: tuple[str, ...]) -> None:
    """Import all variants and tasks, and then the plug-in files."""
    load_package("variants")
    load_package("tasks")
    for path in plugins:
        load_plugin(Path(path))
