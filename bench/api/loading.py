"""Discovery: import every module that registers something, ours and plug-ins."""

import ast
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from bench.api.calibration import read_choices
from bench.api.errors import BenchError
from bench.api.foreign_prints import prints_to_standard_error
from bench.api.opened_files import watch_opened
from bench.api.ours import is_ours
from bench.api.plain_text import named_message_of

_LOADED: set[str] = set()
_PLUGINS: dict[str, "Plugin"] = {}


class Plugin(NamedTuple):
    """A plug-in of this process."""

    path: Path
    source: bytes
    """As it was compiled; the file may have changed since."""
    opened: frozenset[str]
    """Files that it opened for reading when it was imported."""
    beside: Mapping[str, bytes]
    """Sources of the modules of its folder that it imports, by name, as they were then."""


def load_package(name: str) -> None:
    """Import every module of a package whose name does not begin with an underscore, once."""
    if name in _LOADED:
        return
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.rpartition(".")[2].startswith("_"):
            _imported(module.name)
    read_choices()
    _LOADED.add(name)


def _imported(name: str) -> None:
    """Import a module of ours.

    Raises:
        BenchError: It does not import, as while somebody writes it; the message says where.
    """
    try:
        importlib.import_module(name)
    except BenchError:
        raise
    except Exception as error:  # a half-written file may raise anything
        path = Path(*name.split(".")).with_suffix(".py")
        raise BenchError(f"{path} does not import: {_why(error, path)}; mend the file.") from error


def load_plugin(path: Path | str) -> None:
    """Import a file that registers variants or tasks.

    Raises:
        BenchError: The file is not there or does not import; the message says why.
    """
    path = Path(path)
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
        touched = _executed(path, module)
    except (BenchError, KeyboardInterrupt):
        del sys.modules[name]
        raise
    except BaseException as error:  # a file that asks to exit must not end the program in silence
        del sys.modules[name]
        why = _why(error, path)
        raise BenchError(f"plug-in {path} failed to import: {why}; mend the file.") from error
    if touched:
        del sys.modules[name]
        del _PLUGINS[name]
        raise BenchError(
            f"plug-in {path} changes {', '.join(touched)} when it is imported, which all variants "
            "share; change nothing outside the file."
        )
    read_choices()


def _why(error: BaseException, path: Path) -> str:
    """What a file raised, and the line of it that the error left last, if the file ever ran."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [one for one in frames if Path(one.filename).parts[-len(path.parts) :] == path.parts]
    place = f" ({path.name}:{mine[-1].lineno})" if mine else ""
    return f"{named_message_of(error)}{place}"


def _executed(path: Path, module: ModuleType) -> list[str]:
    """Run the code of a plug-in; what it changed of the process, which is put back."""
    from bench.api.process_state import ProcessState  # noqa: PLC0415  it imports torch

    before = ProcessState.now()
    try:
        with prints_to_standard_error(), redirect_stderr(sys.stdout), watch_opened() as opened:
            # compiled here: a file of compiled code counts as fresh for a second after an edit
            source = path.read_bytes()
            exec(compile(source, path, "exec"), module.__dict__)
        beside = _imported_from(path.resolve().parent, source)
        _PLUGINS[module.__name__] = Plugin(path, source, frozenset(opened), beside)
    finally:
        touched = before.undo(importing=True)
    return touched


def _imported_from(folder: Path, source: bytes) -> dict[str, bytes]:
    """Sources of the modules of a folder that a source imports, and of those that they import.

    They are found by their names in the text, so that every process finds the same ones, whatever
    else it has imported, and those of imports inside functions, too. A package counts with all of
    its modules.
    """
    found: dict[str, bytes] = {}
    asked: set[str] = set()
    waiting = [source]
    while waiting:
        names = _names_of_imports(waiting.pop()) - asked
        asked |= names
        for name in names:
            new = {part: path.read_bytes() for part, path in _files_of(folder, name)}
            found |= new
            waiting += new.values()
    return found


def _files_of(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Name and file of every module of a folder that a name stands for."""
    path = folder / f"{name}.py"
    if path.is_file():
        yield name, path
    if (folder / name).is_dir() and not _is_elsewhere(folder / name):
        yield from _modules_of(folder, name)


def _modules_of(folder: Path, package: str) -> Iterator[tuple[str, Path]]:
    """Name and file of every module of a package."""
    for inside, folders, files in os.walk(folder / package):
        # a name with a dot or a hyphen is no package, such as that of an environment
        folders[:] = [one for one in folders if one.isidentifier()]
        above = Path(inside).relative_to(folder).parts
        for file in files:
            if file.endswith(".py"):
                last = [] if file == "__init__.py" else [file.removesuffix(".py")]
                yield ".".join([*above, *last]), Path(inside, file)


def _is_elsewhere(folder: Path) -> bool:
    """Whether Python imports the name of a folder from another place, such as a library."""
    try:
        found = importlib.util.find_spec(folder.name)
    except (ImportError, ValueError):
        return False
    places = (found and found.submodule_search_locations) or ()
    return found is not None and folder.resolve() not in [Path(one).resolve() for one in places]


def _names_of_imports(source: bytes) -> set[str]:
    """First parts of the names that a source imports, but ours; none where it is no Python."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError):  # of a module that only a function imports
        return set()
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    told = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    parts = {node.module or "" for node in told}
    return {name.partition(".")[0] for name in whole | parts if not is_ours(name)}


def loaded_plugins() -> Mapping[str, Plugin]:
    """Every plug-in that was imported here, by the name of its module."""
    return _PLUGINS
