"""The code that a result can reach, as a hash that comments, layout and other variants leave alone.

Files are split into their top-level definitions. A definition refers to others by the names in it,
within its module and through imports. The hash of some roots is that of all definitions that can
be reached from them. What is looked up in the registry is reached by no name; it must be a root.
"""

import ast
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from bench.api.code_of_data import read_code_by
from bench.api.loading import Plugin, loaded_plugins
from bench.api.registry import Declared

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("bench", "variants", "tasks")
"""Packages whose code decides numbers; `results` and `reports` store and show them."""
WHOLE = "*"
"""Stands for a whole module."""
UNTOLD = {*Declared.__annotations__} - {"config"}
"""What a registration says of itself and no computation reads."""

Place = tuple[str, str]
"""Module, and name of a top-level definition or `WHOLE`."""
Root = Callable[..., object]


@dataclass
class Module:
    """Top-level definitions of one file."""

    name: str
    package: str
    known: Container[str] = ()
    """Names of all modules that are read, so that a submodule is known as one."""
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Place] = field(default_factory=dict)
    loose: list[ast.stmt] = field(default_factory=list)
    """Statements that define nothing and run at import."""


_SEEN: dict[str, tuple[ModuleType, bytes]] = {}
"""Modules with the source that they had when they were first seen here."""
_BEFORE: dict[Path, bytes] = {}
"""Files as they were before this process imported them, where `note_files` was called."""


def note_files() -> None:
    """Read all files of the project, so that one that is written during its import shows."""
    for package in PACKAGES:
        for path in (PROJECT / package).rglob("*.py"):
            with suppress(OSError):  # an editor may have taken it away by now
                _BEFORE[path] = path.read_bytes()


class SourceCode:
    """The sources of all loaded modules of the project and of plug-ins, as they were imported."""

    def __init__(self) -> None:
        """Read the files that nobody has read yet: what is edited later is not what runs here."""
        plugins = loaded_plugins()
        self.plugins = plugins_digest()
        self._sources: dict[str, bytes] = {}
        for name, one in plugins.items():
            self._sources |= {**one.beside, name: one.source}
        self._whole = set(self._sources)
        """Modules that count as a whole: plug-ins, and what they import from beside them."""
        self._together = _together(plugins)
        folders = {one.path.resolve().parent for one in plugins.values()}
        for name, module in [*sys.modules.items()]:
            named = name.partition(".")[0] in PACKAGES
            path = _source_file(module) if named or folders else None
            if name in plugins or path is None:
                continue
            ours = named and path.is_relative_to(PROJECT)
            beside = not ours and _resolved(path.parent) in folders
            source = _first_seen(name, module, path) if ours or beside else None
            if source is not None:
                self._sources[name] = source
                self._whole |= {name} if beside else set()
        self._modules: dict[str, Module] = {}
        self._digests: dict[Place, str] = {}
        self._references: dict[Place, frozenset[Place]] = {}

    @cached_property
    def files(self) -> dict[str, str]:
        """Hash of the whole source of every module, by name."""
        return {name: sha256(source).hexdigest()[:12] for name, source in self._sources.items()}

    def differs(self, files: Mapping[str, str]) -> bool:
        """Whether a module had another source in a process with these `files`."""
        return any(files.get(name, here) != here for name, here in self.files.items())

    def digest(self, roots: Iterable[Root], settings: Iterable[str] = ()) -> str:
        """Twelve hex digits for the code that the roots can reach.

        Args:
            roots: Classes and functions; those of other packages count for nothing.
            settings: Texts that decide as much as code does.
        """
        found = sha256()
        for text in settings:
            found.update(f"{text}\0".encode())
        for place in sorted(self.reached(roots)):
            found.update(f"{place[0]}:{place[1]} {self._digests[place]}\0".encode())
        return found.hexdigest()[:12]

    def reached(self, roots: Iterable[Root]) -> set[Place]:
        """Every definition that can be reached."""
        waiting = [
            place
            for root in roots
            for place in self._resolve(root.__module__, root.__qualname__.partition(".")[0])
        ]
        seen: set[Place] = set()
        while waiting:
            place = waiting.pop()
            if place not in seen:
                seen.add(place)
                waiting += self._refers(place)
        return seen

    def _refers(self, place: Place) -> frozenset[Place]:
        """Definitions that one definition names; hashes it on the way."""
        if place not in self._references:
            name, definition = place
            module = self._module(name)
            assert module is not None, "only what is ours is resolved"
            body = [*module.loose]
            if definition == WHOLE:
                body += [one for many in module.definitions.values() for one in many]
            else:
                body += module.definitions[definition]
            nodes = [_told(statement) for statement in body]
            named = {found for node in nodes for found in self._named_in(node, module)}
            together = self._together.get(name, frozenset())
            self._references[place] = frozenset(named | together) - {place}
            bare = [ast.dump(_Bare().visit(node)) for node in nodes]
            self._digests[place] = sha256("\n".join(bare).encode()).hexdigest()
        return self._references[place]

    def _named_in(self, node: ast.AST, module: Module) -> Iterator[Place]:
        for inside in ast.walk(node):
            if isinstance(inside, ast.Name):
                yield from self._resolve(module.name, inside.id)
            elif isinstance(inside, ast.Attribute) and isinstance(inside.value, ast.Name):
                owner = module.imports.get(inside.value.id)
                if owner is not None and owner[1] == WHOLE:
                    yield from self._resolve(owner[0], inside.attr)
            elif isinstance(inside, ast.ImportFrom | ast.Import):
                for target, name in _imported(inside, module).values():
                    yield from self._resolve(target, name)

    def _resolve(self, module: str, name: str) -> Iterator[Place]:
        """Where a name of a module is defined, through imports; nothing if it is not ours."""
        for _ in range(20):  # re-exports in a circle would not import
            found = self._module(module)
            if found is None:
                return
            if module in self._whole and name not in found.imports:
                yield module, WHOLE
                return
            if name == WHOLE or name in found.definitions:
                if name != WHOLE:  # a module that is only named is reached by what is taken of it
                    yield module, name
                return
            if name not in found.imports:
                return
            module, name = found.imports[name]

    def _module(self, name: str) -> Module | None:
        if name not in self._sources:
            return None
        if name not in self._modules:
            loaded = sys.modules.get(name)
            is_package = loaded is not None and hasattr(loaded, "__path__")
            package = name if is_package else name.rpartition(".")[0]
            module = Module(name, package, self._sources)
            self._modules[name] = _split(module, _statements(self._sources[name]))
        return self._modules[name]


def loaded_source() -> SourceCode:
    """The code that this process has loaded; made anew only when more was loaded."""
    return _made(plugins_digest(), frozenset(sys.modules))


@lru_cache(maxsize=1)
def _made(plugins: str, modules: frozenset[str]) -> SourceCode:
    return SourceCode()


read_code_by(lambda makers: loaded_source().digest(makers))


def plugins_digest() -> str:
    """Hash of the plug-ins of this process as they were loaded, byte by byte; empty for none.

    It covers the modules that they import from beside them.
    """
    found = sha256()
    for name, plugin in sorted(loaded_plugins().items()):
        for part, source in ((name, plugin.source), *sorted(plugin.beside.items())):
            found.update(part.encode() + b"\0" + source + b"\0")
    return found.hexdigest()[:12] if loaded_plugins() else ""


def _together(plugins: Mapping[str, Plugin]) -> dict[str, frozenset[Place]]:
    """What counts with a module: all that a plug-in imports from its folder, or its package."""
    found: dict[str, frozenset[Place]] = {}
    for name, plugin in plugins.items():
        found[name] = frozenset((part, WHOLE) for part in plugin.beside)
        for part in plugin.beside:
            package = part.partition(".")[0]
            same = (one for one in plugin.beside if one.partition(".")[0] == package)
            found[part] = frozenset((one, WHOLE) for one in same)
    return found


def _source_file(module: ModuleType) -> Path | None:
    """The Python file that a loaded module names, if it names one."""
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) and file.endswith(".py") else None


@cache
def _resolved(folder: Path) -> Path:
    return folder.resolve()


def _first_seen(name: str, module: ModuleType, path: Path) -> bytes | None:
    """The source of a module when it was first seen; None if it had no file then.

    Memory and the server that workers are forked from hold that code, whatever happens to the file.
    """
    held = _SEEN.get(name)
    if held is None or held[0] is not module:  # another module of this name has been imported
        if not path.is_file():
            return None
        now = path.read_bytes()
        before = _BEFORE.get(path, now)
        # nobody knows which of two texts was imported
        held = _SEEN[name] = (module, now if now == before else before + b"\n" + now)
    return held[1]


def _statements(source: bytes) -> list[ast.stmt]:
    """The code of a module; what is no Python, which a package may hold, counts byte by byte."""
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return [ast.Expr(ast.Constant(source))]


def _split(module: Module, body: Iterable[ast.stmt]) -> Module:
    """Sort statements by what they define."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.definitions.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            module.imports |= _imported(statement, module)
        else:
            _sort(module, statement)
    return module


def _sort(module: Module, statement: ast.stmt) -> None:
    names = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if names:
        for name in names:
            module.definitions.setdefault(name, []).append(statement)
    elif isinstance(statement, ast.If | ast.Try):
        _split(module, ast.iter_child_nodes(statement))  # type: ignore[arg-type]
    elif not _is_text(statement):
        module.loose.append(statement)


def _imported(statement: ast.Import | ast.ImportFrom, module: Module) -> dict[str, Place]:
    """Name -> where it comes from, for one import of a module."""
    if isinstance(statement, ast.Import):
        return {
            (alias.asname or alias.name.partition(".")[0]): (alias.name, WHOLE)
            for alias in statement.names
        }
    source = statement.module or ""
    if statement.level:
        above = module.package.rsplit(".", statement.level - 1)[0]
        source = f"{above}.{source}".rstrip(".")
    return {
        alias.asname or alias.name: _member(source, alias.name, module.known)
        for alias in statement.names
    }


def _member(source: str, name: str, known: Container[str]) -> Place:
    """A submodule, or a name inside a module."""
    whole = f"{source}.{name}"
    return (whole, WHOLE) if whole in known else (source, name)


def _told(statement: ast.stmt) -> ast.stmt:
    """A definition without what its registration says of it."""
    calls: list[ast.expr] = []
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        calls = statement.decorator_list
    elif isinstance(statement, ast.Expr):
        calls = [statement.value]
    for call in calls:
        if isinstance(call, ast.Call):
            call.keywords = [one for one in call.keywords if one.arg not in UNTOLD]
    return statement


def _is_text(statement: ast.AST) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


class _Bare(ast.NodeTransformer):
    """Takes away what computes nothing: docstrings, types of arguments, sentences of errors."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
        return super().generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        for inside in ast.walk(node):
            if isinstance(inside, ast.Constant) and isinstance(inside.value, str):
                inside.value = ""
        return node
