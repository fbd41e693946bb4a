"""Commands that only read declarations run without torch.

Importing torch and numpy takes five times as long as everything else that `list`, `show`, `plan`
and a wrong name need. Those commands read what classes declare (names, options, papers,
capabilities) and compute nothing. So they import the variants and the tasks above stand-ins for
packages of others: classes can inherit from the stand-ins and annotations can name them, but
nothing can be computed with them. Code that tries makes the command start over with the real
packages. `docs/adr/012-commands-without-torch.md` says why.
"""

import dataclasses
import functools
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from inspect import CO_OPTIMIZED
from types import ModuleType
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from bench.api.errors import BenchError

LIGHT = ("bench", "variants", "tasks", "results", "reports", "click", "tabulate", "wcwidth")
"""Packages that are imported as they are, as is the standard library; all others get stand-ins."""
STARTED_OVER = "BENCH_STARTED_OVER"
"""Environment variable of a command that started over; it uses the real packages."""

P = ParamSpec("P")
T = TypeVar("T")


class NeedsRealPackages(BaseException):
    """Something would be computed; no `Exception`, so that nothing on the way catches it."""


def _declare(what: str) -> "Placeholder":
    """Answer a call: in the body of a module or a class it declares, in a function it computes."""
    if sys._getframe(2).f_code.co_flags & CO_OPTIMIZED:
        raise NeedsRealPackages(what)
    return Placeholder(what, called=True)


class PlaceholderClass:
    """Base of every class of a stand-in: it can be inherited from and named, not instantiated."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        return _declare(cls.__qualname__)

    def __class_getitem__(cls, item: Any) -> type["PlaceholderClass"]:
        return cls


class Placeholder:
    """A function or a constant of a stand-in; whoever wants its value gets the real packages.

    A name is one object, so that `torch.float32` equals itself and can be a key. What a call gives
    could equal anything.
    """

    def __init__(self, name: str, *, called: bool = False) -> None:
        self._name = name
        self._called = called

    def __getattr__(self, name: str) -> Any:
        value = _named(self._name, name)
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        return _declare(self._name)

    def __or__(self, other: Any) -> "Placeholder":
        return self  # part of an annotation

    __ror__ = __getitem__ = __or__

    def __eq__(self, other: object) -> bool:
        return self._value() if self._called else self is other

    def __hash__(self) -> int:
        return id(self)

    def _value(self, *args: Any) -> NoReturn:
        raise NeedsRealPackages(self._name)

    __bool__ = __len__ = __iter__ = __int__ = __float__ = __index__ = _value
    __str__ = __repr__ = __format__ = _value
    __lt__ = __le__ = __gt__ = __ge__ = _value
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _value
    __rtruediv__ = __neg__ = __enter__ = _value


def _named(owner: str, name: str) -> Any:
    """What stands for `owner.name`: a class if the name is capitalized, as classes are."""
    if name.startswith("__"):
        raise AttributeError(f"the stand-in for {owner} has no {name}")
    if name[0].isupper():
        return type(name, (PlaceholderClass,), {"__module__": owner})
    return Placeholder(f"{owner}.{name}")


class StandIn(ModuleType):
    """A module whose capitalized names are classes and whose other names are placeholders."""

    def __getattr__(self, name: str) -> Any:
        value = _named(self.__name__, name)
        setattr(self, name, value)
        return value


class StandIns(MetaPathFinder, Loader):
    """Finds a stand-in for every module of a package that is not light."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Take what is neither light nor absent."""
        package = fullname.partition(".")[0]
        if package in LIGHT or package in sys.stdlib_module_names:
            return None
        if package == fullname and PathFinder.find_spec(package) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in has no code."""


def compile_on_demand() -> None:
    """Let the generated methods of dataclasses made from now on be compiled at their first call.

    Compiling those of some 200 option classes takes a third of a light command, which calls few
    of them. Python 3.13 compiles the methods of a class together and has no such function; there
    nothing changes.
    """
    create = getattr(dataclasses, "_create_fn", None)
    if create is not None:
        dataclasses._create_fn = functools.partial(_created_on_demand, create)  # type: ignore[attr-defined]


def _created_on_demand(
    create: Callable[..., Callable[..., Any]], name: str, *args: Any, **kwargs: Any
) -> Callable[..., Any]:
    created: Callable[..., Any] | None = None

    def method(*inputs: Any, **named: Any) -> Any:
        nonlocal created
        created = created or create(name, *args, **kwargs)
        return created(*inputs, **named)

    method.__name__ = name
    return method


_allowed = False


def allow_light_start() -> None:
    """Let commands of this process use stand-ins; for the program, which may start over.

    A process that has imported torch already has nothing to save, and one that started over
    must not do so again.
    """
    global _allowed  # noqa: PLW0603  a fact about the process
    _allowed = os.environ.pop(STARTED_OVER, "") == "" and "torch" not in sys.modules


def is_light() -> bool:
    """Whether this process has stand-ins in the place of packages."""
    return any(isinstance(finder, StandIns) for finder in sys.meta_path)


def light_start(command: Callable[P, T]) -> Callable[P, T]:
    """Let a command begin above stand-ins, and start over where it needs the real packages.

    A plug-in is code of someone else, and `--inline` is for debuggers: both get the real packages
    from the beginning. Any unexpected error under stand-ins starts over too, so that what a user
    sees always comes from the real packages.
    """

    @functools.wraps(command)
    def begin(*args: P.args, **kwargs: P.kwargs) -> T:
        if not _allowed or kwargs.get("plugin") or kwargs.get("inline"):
            return command(*args, **kwargs)
        sys.meta_path.insert(0, StandIns())
        compile_on_demand()
        gc.disable()  # a light command ends before its garbage matters
        try:
            return command(*args, **kwargs)
        except (BenchError, click.ClickException, click.Abort, SystemExit, KeyboardInterrupt):
            raise
        except BaseException:  # noqa: BLE001  the real packages show what it is
            start_over()

    return begin


def need_real_packages() -> None:
    """Start over if this process has stand-ins; call it before anything is written or printed."""
    if is_light():
        start_over()


def start_over() -> NoReturn:
    """Run the same command again in the place of this process, with the real packages."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the command that starts over says what is wrong
            stream.flush()
    # an interrupt from here on waits for the new process, whose interpreter would print a traceback
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ[STARTED_OVER] = "yes"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
