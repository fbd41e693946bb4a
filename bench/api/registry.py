"""The registry: what can be selected, on which axis, with which options and which paper.

Registration is a decorator beside the class; discovery is an explicit call that imports every
public module of a package once, so that a new variant is one new file and no edited file.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from bench.api.config import (
    Config,
    NoOptions,
    build_config,
    config_options,
    declared_axes,
    first_defaults,
)
from bench.api.errors import BenchError, InvalidConfig, UnknownName
from bench.api.selector import Selector, Value, parse, parse_names, show_value

CHAIN_AXES = ("position", "score", "mask", "normalizer", "readout", "history")
"""Axes of the chain, in the order in which they act."""
VARIANT_AXES = ("head", *CHAIN_AXES, "output", "loss")
"""Axes that a variant selector may set."""
BACKBONE_AXES = ("encoder", "source_order", "decoder", "combiner", "direction", "search")
"""Axes of the backbone that a recipe may fix because its mechanism stands there."""
STACKED = ("position", "history", "loss")
"""Axes on which several components may be joined by '+'."""
AXES = (
    *VARIANT_AXES,
    *BACKBONE_AXES,
    "mechanism",
    "recipe",
    "backbone",
    "joint",
    "task",
    "probe",
)

DEFAULTS: Mapping[str, str] = {
    "head": "auto",
    "position": "none",
    "score": "scaled_dot",
    "mask": "full",
    "normalizer": "softmax",
    "readout": "weighted_sum",
    "history": "none",
    "output": "softmax",
    "loss": "none",
}
"""What a chain uses on an axis that nothing sets; `auto` heads are the slot's own."""

PLAIN = DEFAULTS["score"]
"""Plain attention: the baseline, and what stands in the other slots of a backbone."""
PLAIN_POSITION = "sinusoid"
"""Position of plain attention where keys come from its own sequence."""

ABSENT = {"position": "none", "history": "none", "loss": "none"}


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Axis(str, Generic[T]):
    """Name of an axis, and the type of what is registered on it.

    Each contract declares the axis of its implementations, so that what is found there is typed:
    `find(TASKS, "recall").target` is a `type[Task]`.
    """

    __slots__ = ()


Control = Literal["aa", "uniform_baseline", "negative"]
"""Part of a control: the baseline again, equal weights, or another one that should lose."""


@dataclass(frozen=True, kw_only=True)
class Citation:
    """Where a mechanism was published."""

    text: str
    """Authors and year."""
    url: str
    where: str = ""
    """Section and equation."""


@dataclass(frozen=True, kw_only=True)
class DefaultTask:
    """The task that shows what a variant is for."""

    task: str
    """Task selector; empty where no task here shows it yet, so it is certified and timed only."""
    backbone: str = ""
    """Backbone selector, or the task's own."""
    slot: str = ""
    """Slot of the backbone, or its main one."""

    @cached_property
    def selector(self) -> Selector:
        """The task, parsed."""
        return parse(self.task)

    @cached_property
    def backbone_selector(self) -> Selector | None:
        """The backbone, parsed; None for the task's own."""
        return parse(self.backbone) if self.backbone else None


@dataclass(frozen=True, kw_only=True)
class Registration(Generic[T_co]):
    """One registered thing."""

    axis: str
    name: str
    target: T_co
    """The class; for recipes, the recipe."""
    config: type[Config] = NoOptions
    title: str = ""
    citation: Citation | None = None
    revision: int = 1
    """Raised by hand when numbers change."""
    default_task: DefaultTask | None = None
    """Set exactly where the name is listed as a variant of its own."""
    cost: float = 1.0
    """Training time relative to `scaled_dot`, measured; lets the planner fill a budget."""
    control: Control | None = None
    """Which control it is; None for a contender."""
    rosters: tuple[str, ...] = ()
    """Presets on whose shared tasks it runs."""
    about: str = ""
    """Title page of an entry that shares its module with others; else the module's docstring."""
    deviations: str = ""
    """How the code differs from the paper, where the title page does not say it."""
    module: str = ""

    def title_page(self) -> str:
        """What it computes, its paper, and a paragraph `Deviations:`."""
        module = sys.modules.get(self.module)
        return inspect.cleandoc(self.about or (module.__doc__ if module else "") or "")

    def differences(self) -> str:
        """How the code differs from the paper, in one paragraph."""
        return self.deviations or " ".join(self.title_page().partition("Deviations:")[2].split())


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Named choices on the axes: data, not code."""

    axes: Mapping[str, str]
    """Axis to selector text."""
    main: str = ""
    """Axis that options without an axis name go to."""
    fixes: Mapping[str, str] = field(default_factory=dict)
    """Backbone axes that the mechanism itself is: decoder, direction."""

    @cached_property
    def chosen(self) -> Mapping[str, tuple[Selector, ...]]:
        """What stands on each axis, parsed."""
        return {axis: parse_names(text) for axis, text in self.axes.items()}

    @cached_property
    def fixed(self) -> Mapping[str, Selector]:
        """What stands on each backbone axis, parsed."""
        return {axis: parse(text) for axis, text in self.fixes.items()}


RECIPES = Axis[Recipe]("recipe")


class Declared(TypedDict, total=False):
    """What a registration may declare; see the fields of `Registration`."""

    config: type[Config]
    title: str
    citation: Citation
    revision: int
    default_task: DefaultTask
    cost: float
    control: Control
    rosters: tuple[str, ...]
    deviations: str
    about: str


_ENTRIES: dict[str, dict[str, Registration[Any]]] = {axis: {} for axis in AXES}
_LOADED: set[str] = set()
_CHANGED: set[tuple[str, str]] = set()
"""What has an option whose default has changed since it was added."""


def register(axis: str, name: str, **declared: Unpack[Declared]) -> Callable[[type[T]], type[T]]:
    """Register the decorated class under a name; see `Registration` for the keywords."""

    def add(target: type[T]) -> type[T]:
        found = Registration(
            axis=axis, name=name, target=target, module=target.__module__, **declared
        )
        if not found.title:
            found = replace(found, title=_first_line(target.__doc__))
        add_registration(found)
        return target

    return add


def register_recipe(
    name: str, recipe: Recipe, *, module: str, **declared: Unpack[Declared]
) -> None:
    """Register a recipe; `module` is the caller's `__name__`."""
    add_registration(
        Registration(axis=RECIPES, name=name, target=recipe, module=module, **declared)
    )


def add_registration(new: Registration[object]) -> None:
    """Put an entry into its axis; two different things under one name are an error."""
    if new.axis not in _ENTRIES:
        raise InvalidConfig(str(UnknownName.among("axis", new.axis, AXES)))
    old = _ENTRIES[new.axis].get(new.name)
    if old is not None and _origin(old) != _origin(new):
        raise InvalidConfig(
            f"{new.axis} {new.name!r} of {new.module} is already registered by {old.module}; "
            "choose another name."
        )
    _ENTRIES[new.axis][new.name] = new
    if first_defaults(new.config):
        _CHANGED.add((new.axis, new.name))


def _origin(item: Registration[object]) -> tuple[str, str]:
    """Where a thing was written; importing its module again changes nothing."""
    return item.module, getattr(item.target, "__qualname__", "") or repr(item.target)


@overload
def find(axis: Axis[T], name: str) -> Registration[T]: ...
@overload
def find(axis: str, name: str) -> Registration[Any]: ...
def find(axis: str, name: str) -> Registration[Any]:
    """Look a name up on one axis."""
    found = _ENTRIES[axis].get(name)
    if found is None:
        raise UnknownName.among(axis, name, _ENTRIES[axis], see=f"bench list {axis}")
    return found


@overload
def registrations(axis: Axis[T]) -> dict[str, Registration[T]]: ...
@overload
def registrations(axis: str) -> dict[str, Registration[object]]: ...
def registrations(axis: str) -> Mapping[str, Registration[object]]:
    """Everything on one axis, by name, sorted."""
    return dict(sorted(_ENTRIES[axis].items()))


def listed_variants() -> dict[str, Registration[object]]:
    """Everything that is listed as a variant: it has a default task."""
    found: dict[str, Registration[object]] = {}
    for axis in ("recipe", "mechanism", *VARIANT_AXES):
        for name, item in _ENTRIES[axis].items():
            if item.default_task is not None:
                found.setdefault(name, item)
    return dict(sorted(found.items()))


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


def complete(axis: str, selector: Selector) -> Selector:
    """Write every option of a component out, and those of components inside it."""
    found = find(axis, selector.name)
    written = config_options(build_config(found.config, selector.options, selector.name))
    for key, inside in inner_axes(found.config, written).items():
        written[key] = tuple(complete(inside, one) for one in options_of(written[key]))
    return Selector(selector.name, written)


def canonical(axis: str, selector: Selector) -> Selector:
    """Leave the defaults of a component's options out; equal components print alike.

    An option whose default has changed (`FirstDefault`) is always written.
    """
    found = find(axis, selector.name)
    written = config_options(build_config(found.config, selector.options, selector.name))
    usual = config_options(found.config())
    always = first_defaults(found.config)
    axes = inner_axes(found.config, written)
    kept: dict[str, Value] = {}
    for key, value in written.items():
        mine, theirs = (_canonical_value(axes.get(key), one) for one in (value, usual[key]))
        if mine != theirs or key in always or _default_moved(axes.get(key), value):
            kept[key] = mine
    return Selector(selector.name, kept)


def _canonical_value(axis: str | None, value: Value) -> Value:
    if axis is None or not isinstance(value, tuple):
        return value
    return tuple(canonical(axis, one) for one in value)


def _default_moved(axis: str | None, value: Value) -> bool:
    return axis is not None and any(default_moved(axis, one) for one in options_of(value))


def default_moved(axis: str, selector: Selector) -> bool:
    """Whether a component, or one inside it, has an option whose default has changed."""
    found = find(axis, selector.name)
    written = config_options(build_config(found.config, selector.options, selector.name))
    axes = inner_axes(found.config, written)
    return bool(first_defaults(found.config)) or any(
        _default_moved(inside, written[key]) for key, inside in axes.items()
    )


def known(axis: str, name: str) -> bool:
    """Whether a name is registered on an axis."""
    return name in _ENTRIES[axis]


def any_default_changed() -> bool:
    """Whether a registered option has another default today than when it was added."""
    return bool(_CHANGED)


def show_revisions(used: Iterable[tuple[str, int]]) -> str:
    """`name:number` of everything that is no longer in its first revision.

    >>> show_revisions([("softmax", 1), ("pooling", 3), ("birnn", 2), ("pooling", 3)])
    'birnn:2 pooling:3'
    """
    return " ".join(f"{name}:{number}" for name, number in sorted(set(used)) if number > 1)


def inner(axis: str, selector: Selector) -> list[tuple[str, Selector]]:
    """Axis and selector of every component that a complete selector names inside itself."""
    found: list[tuple[str, Selector]] = []
    for key, inside in inner_axes(find(axis, selector.name).config, selector.options).items():
        for named in options_of(selector.options[key]):
            found += [(inside, named), *inner(inside, named)]
    return found


def inner_axes(config: type[Config], options: Mapping[str, Value]) -> dict[str, str]:
    """Axis of every option that names a component: the declared one, or that of its own name."""
    declared = declared_axes(config)
    axes = {key: declared.get(key, key) for key in options if isinstance(options[key], tuple)}
    return {key: axis for key, axis in axes.items() if axis in _ENTRIES}


@overload
def make(axis: Axis[type[T]], selector: Selector, *args: object, **kwargs: object) -> T: ...
@overload
def make(axis: str, selector: Selector, *args: object, **kwargs: object) -> Any: ...
def make(axis: str, selector: Selector, *args: object, **kwargs: object) -> Any:
    """Build what a selector names: `target(config, *args, **kwargs)`."""
    found = find(axis, selector.name)
    config = build_config(found.config, selector.options, selector.name)
    return found.target(config, *args, **kwargs)


def options_of(value: Value, owner: str = "option") -> tuple[Selector, ...]:
    """Read an option that must be names joined by '+'."""
    if isinstance(value, tuple):
        return value
    raise InvalidConfig(f"{owner} takes a name, got {show_value(value)}.")


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0].rstrip(".")
