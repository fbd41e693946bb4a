"""Discovery: import every module that registers something, ours and plug-ins."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench.api.errors import BenchError
from bench.api.opened_files import watch_opened

_LOADED: set[str] = set()
_PLUGINS: dict[str, "Plugin"] = {}


class Plugin(NamedTuple):
    """A plug-in of this process."""

    path: Path
    source: bytes
    """As it was compiled; the file may have changed since."""
    opened: frozenset[str]
    """Files that it opened for reading when it was imported."""


def load_package(name: str) -> None:
    """Import every module of a package whose name does not begin with an underscore, once."""
    if name in _LOADED:
        return
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)
    _LOADED.add(name)


def load_plugin(path: Path) -> None:
    """Import a file that registers variants or tasks.

    Raises:
        BenchError: The file is not there or does not import; the message says why.
    """
    if not path.is_file():
        raise BenchError(f"no plug-in file {path}; give the path of a Python file.")
    name = f"bench_plugin_{path.stem}"
    if name in sys.modules:
        loaded = Path(sys.modules[name].__file__ or "")
        if not loaded.samefile(path):
            raise BenchError(f"{path} and {loaded} have one name; rename one of the plug-ins.")
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise BenchError(f"cannot import {path}: it is not a Python file; give a .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # compiled here: a file of compiled code counts as fresh for a second after an edit
        source = path.read_bytes()
        with watch_opened() as opened:
            exec(compile(source, path, "exec"), module.__dict__)
        _PLUGINS[name] = Plugin(path, source, frozenset(opened))
    except BenchError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise BenchError(f"plug-in {path} failed to import: {error!r}; mend the file.") from error


def loaded_plugins() -> Mapping[str, Plugin]:
    """Every plug-in that was imported here, by the name of its module."""
    return _PLUGINS
