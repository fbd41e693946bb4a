"""Discovery: import every module that registers something, ours and plug-ins."""

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path

from bench.api.errors import BenchError

_LOADED: set[str] = set()


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
    if spec is None or spec.loader is None:
        raise BenchError(f"cannot import {path}: it is not a Python file; give a .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BenchError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise BenchError(f"plug-in {path} failed to import: {error!r}; mend the file.") from error
