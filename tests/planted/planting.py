"""Put another text of a file into the modules that are already imported, and take it out again.

Functions keep their identity and get other code, so every importer, subclass and registration sees
the defect. Constants of modules and classes are set where their line changed. Defaults of
arguments, decorators and fields of options stay as they are: a change of these alone is refused.
"""

import ast
import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from bench.api.loading import load_package

ROOT = Path(__file__).parents[2]


class NothingPlanted(Exception):
    """No function and no constant differs, so there is nothing to find."""


@contextmanager
def planted(file: str, changed: str) -> Iterator[None]:
    """Run with another text of a file.

    Args:
        file: Path of a module below the root of the project.
        changed: Its whole text with the defect.

    Raises:
        NothingPlanted: The text changes no function body and no constant.
    """
    text = (ROOT / file).read_text(encoding="utf-8")
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    with ExitStack() as undo:
        count = _swap_functions(file, text, changed, undo.callback)
        count += _swap_constants(module, text, changed, undo.callback)
        if not count:
            raise NothingPlanted(f"{file}: the change reaches no function body and no constant.")
        yield


def _swap_functions(file: str, text: str, changed: str, later: Callable[..., object]) -> int:
    path = str(ROOT / file)
    before, after = (_codes(compile(t, path, "exec", dont_inherit=True)) for t in (text, changed))
    if path not in _functions():
        _functions.cache_clear()  # the module was imported later
    alive = _functions().get(path, {})
    count = 0
    for name, code in after.items():
        old = before.get(name)
        if old is None or _same(old, code):
            continue
        for function in alive.get(name, ()):
            later(setattr, function, "__code__", function.__code__)
            function.__code__ = code
            count += 1
    return count


def _codes(module: CodeType) -> dict[str, CodeType]:
    """Code of the functions of a module and of its classes, by qualified name."""
    found: dict[str, CodeType] = {}
    waiting = [module]
    while waiting:
        for part in waiting.pop().co_consts:
            if not isinstance(part, CodeType):
                continue
            if part.co_flags & 2:  # a function has fast locals, the body of a class has not
                found.setdefault(part.co_qualname, part)
            else:
                waiting.append(part)
    return found


def _same(one: CodeType, two: CodeType) -> bool:
    """Whether two functions do the same, wherever they are in the file."""
    if (one.co_code, one.co_names, one.co_varnames) != (two.co_code, two.co_names, two.co_varnames):
        return False
    if len(one.co_consts) != len(two.co_consts):
        return False
    pairs = zip(one.co_consts, two.co_consts, strict=True)
    return all(
        _same(a, b)
        if isinstance(a, CodeType) and isinstance(b, CodeType)
        else (type(a), repr(a)) == (type(b), repr(b))
        for a, b in pairs
    )


@cache
def _functions() -> dict[str, dict[str, list[FunctionType]]]:
    """Functions of the project that are alive, by file and qualified name."""
    for package in ("bench.running", "bench.timing", "bench.training", "reports"):
        load_package(package)  # certificates import the rest
    gc.unfreeze()  # a copy of the process was made with all of them frozen, which are not listed
    found: dict[str, dict[str, list[FunctionType]]] = {}
    for thing in gc.get_objects():
        # by type, for asking some objects of torch what they are an instance of warns
        if type(thing) is FunctionType and thing.__code__.co_filename.startswith(str(ROOT)):
            of_file = found.setdefault(thing.__code__.co_filename, {})
            of_file.setdefault(thing.__code__.co_qualname, []).append(thing)
    return found


def _swap_constants(
    module: ModuleType, text: str, changed: str, later: Callable[..., object]
) -> int:
    before, after = (dict(_constants(ast.parse(t))) for t in (text, changed))
    count = 0
    for name, value in after.items():
        if name not in before or ast.dump(before[name]) == ast.dump(value):
            continue
        *owners, attribute = name.split(".")
        owner = vars(module)[owners[0]] if owners else module
        new = eval(compile(ast.Expression(value), str(module.__file__), "eval"), vars(module))
        old = vars(owner)[attribute]
        holders = [owner] if owners else _importers(attribute, old)
        for holder in holders:
            later(setattr, holder, attribute, old)
            setattr(holder, attribute, new)
            count += 1
    return count


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that a module and its classes assign once, and what they assign; no options."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and "dataclass" not in map(_named, node.decorator_list):
            for name, value in _assigned(node.body):
                yield f"{node.name}.{name}", value
    yield from _assigned(tree.body)


def _named(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.id if isinstance(called, ast.Name) else ""


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def _importers(name: str, value: object) -> list[ModuleType]:
    """Modules of the project that know a constant by this name."""
    return [
        module
        for module in list(sys.modules.values())
        if (getattr(module, "__file__", None) or "").startswith(str(ROOT))
        and vars(module).get(name) is value
    ]
