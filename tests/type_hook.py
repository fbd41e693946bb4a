"""Annotations of `variants` and `tasks` are checked while tests run, shapes included.

jaxtyping's own hook builds two checkers of every function when its module is imported, which takes
longer than all the imports, and asks both at every call. This one builds one checker of a function
when it is first called. It looks at the arguments, calls the function and looks at the result; axes
of one name have one size in all of them.
"""

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType, ModuleType, UnionType
from typing import Any, ForwardRef, Union, get_args, get_origin, get_type_hints
from unittest.mock import patch
from zlib import crc32

from beartype import BeartypeConf, beartype
from jaxtyping import TypeCheckError, jaxtyped

PACKAGES = ("variants", "tasks")
COMPILED = f"checked{crc32(Path(__file__).read_bytes()):x}"
"""Compiled files have this in their names, so that none of another hook is taken."""

_beartype = beartype(conf=BeartypeConf(violation_type=TypeCheckError))
_axes = jaxtyped("context")
"""Within it sizes of axes are remembered; it holds none of them itself."""


def install() -> None:
    """Check what is imported from now on."""
    sys.meta_path.insert(0, _Finder())


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose arguments and result are checked at every call."""
    notes = function.__annotations__
    if not notes:
        return function
    if inspect.isgeneratorfunction(function) or any("{" in str(note) for note in notes.values()):
        # an axis may be named after an argument, and what a generator yields is not looked at
        return jaxtyped(function, typechecker=beartype)
    built: list[Callable[..., Any]] = []

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not built:
            built.append(_built(function))
        with _axes:
            return built[0](*args, **kwargs)

    checking.checks = True
    return checking


def checked_class(cls: type) -> type:
    """The class; a dataclass checks its fields when it is made."""
    if dataclasses.is_dataclass(cls) and not hasattr(cls.__init__, "checks"):
        cls.__init__ = checked(cls.__init__)
    return cls


def _built(function: Callable[..., Any]) -> Callable[..., Any]:
    """What checks and calls this very function, whose code a planted mistake may replace."""
    notes, names = function.__annotations__, function.__globals__
    function.__annotations__ = {name: _type(note, names) for name, note in notes.items()}
    try:
        return _beartype(function)
    finally:
        function.__annotations__ = notes


def _type(note: object, names: dict[str, Any], deep: int = 2) -> Any:
    """The type of an annotation; where a name in it is not there while tests run, Any."""

    class Holder:
        __annotations__ = {"note": note}

    try:
        hint = get_type_hints(Holder, names, include_extras=True)["note"]
        return _unrolled(hint, names, deep)
    except Exception:  # noqa: BLE001  whatever keeps a name from being read
        return Any


def _unrolled(hint: Any, names: dict[str, Any], deep: int) -> Any:
    """An alias that contains itself, down to values that lie deeper than any of ours."""
    if isinstance(hint, ForwardRef):
        return _type(hint, names, deep - 1) if deep else Any
    if "ForwardRef(" not in repr(hint):
        return hint
    origin = Union if isinstance(hint, UnionType) else get_origin(hint)
    return origin[tuple(_unrolled(one, names, deep) for one in get_args(hint))]


class _Decorated(ast.NodeTransformer):
    """Every function and class with a decorator of this module."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.generic_visit(node)
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body[start:start] = ast.parse(
            f"from {__name__} import checked as __checked__, checked_class as __checked_class__"
        ).body
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        # innermost: other decorators take annotations away
        node.decorator_list.append(ast.copy_location(ast.Name("__checked__", ast.Load()), node))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        # outermost: @dataclass comes first
        name = ast.Name("__checked_class__", ast.Load())
        node.decorator_list.insert(0, ast.copy_location(name, node))
        return node


class _Loader(SourceFileLoader):
    """Compiles with checks, into files beside those without."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        tree = _Decorated().visit(ast.parse(data, path))
        return compile(
            ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=_optimize
        )

    def get_code(self, fullname: str) -> CodeType | None:
        own = partial(cache_from_source, optimization=COMPILED)
        with patch("importlib._bootstrap_external.cache_from_source", own):
            return super().get_code(fullname)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
