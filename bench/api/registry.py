"""The registry: what can be selected, on which axis, with which options and which paper.

Registration is a decorator beside the class; discovery is an explicit call (`bench.api.loading`),
so that a new variant is one new file and no edited file.
"""

import inspect
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Literal, TypedDict, TypeVar, Unpack, overload

from bench.api.axes import AXES, VARIANT_AXES, Axis
from bench.api.config import (
    Config,
    NoOptions,
    build_config,
    first_defaults,
)
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.ours import is_ours
from bench.api.selector import Selector, parse, parse_names

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


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
    does_not_show: str = ""
    """Why its default task does not show the advantage that the paper reports: what was reported,
    at what size, and why it cannot appear here. Empty where it can."""
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
_MADE: ContextVar[set[tuple[str, str]] | None] = ContextVar("made", default=None)


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
    does_not_show: str
    about: str


_ENTRIES: dict[str, dict[str, Registration[object]]] = {axis: {} for axis in AXES}
NAMED_ALONE = ("recipe", "mechanism", *VARIANT_AXES)
"""Axes of which a name by itself is a variant."""
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
    """Put an entry into its axis.

    Raises:
        InvalidConfig: There is no such axis, or another thing has this name.
    """
    if new.axis not in _ENTRIES:
        raise InvalidConfig(str(UnknownName.among("axis", new.axis, AXES)))
    old = _ENTRIES[new.axis].get(new.name)
    if old is not None and _origin(old) != _origin(new):
        raise InvalidConfig(
            f"{new.axis} {new.name!r} of {new.module} is already registered by {old.module}; "
            "choose another name."
        )
    _refuse_taken_variant(new)
    _ENTRIES[new.axis][new.name] = new
    if first_defaults(new.config):
        _CHANGED.add((new.axis, new.name))


def _refuse_taken_variant(new: Registration[object]) -> None:
    """Refuse a variant of a plug-in that would stand for one of ours wherever it is named.

    Raises:
        InvalidConfig: A variant of ours, of another axis, has this name.
    """
    if new.axis not in NAMED_ALONE or is_ours(new.module):
        return
    for axis in NAMED_ALONE:
        old = _ENTRIES[axis].get(new.name)
        if axis != new.axis and old is not None and is_ours(old.module):
            raise InvalidConfig(
                f"{new.axis} {new.name!r} of {new.module} has the name of the {axis} of "
                f"{old.module}, which is asked for by its name alone; choose another name."
            )


def _origin(item: Registration[object]) -> tuple[str, str]:
    """Where a thing was written; importing its module again changes nothing."""
    return item.module, getattr(item.target, "__qualname__", "") or repr(item.target)


@overload
def find(axis: Axis[T], name: str) -> Registration[T]: ...
@overload
def find(axis: str, name: str) -> Registration[object]: ...
def find(axis: str, name: str) -> Registration[object]:
    """Look a name up on one axis.

    Raises:
        UnknownName: The axis has no such name.
    """
    found = _ENTRIES[axis].get(name)
    if found is None:
        readers = [one for one, it in _ENTRIES[axis].items() if name in _data_sets(it)]
        if readers:
            read = ", ".join(sorted(readers))
            raise UnknownName(f"{name!r} is no {axis} but a data set; it is read by {read}.")
        raise UnknownName.among(axis, name, _ENTRIES[axis], see=f"bench list {axis}")
    return found


def _data_sets(entry: Registration[object]) -> tuple[str, ...]:
    """Data sets that a task reads; nothing else names any."""
    return getattr(entry.target, "data_sets", ())


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
    for axis in NAMED_ALONE:
        for name, item in _ENTRIES[axis].items():
            if item.default_task is not None:
                found.setdefault(name, item)
    return dict(sorted(found.items()))


def has_axis(name: str) -> bool:
    """Whether there is an axis of this name."""
    return name in _ENTRIES


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


@overload
def make(axis: Axis[type[T]], selector: Selector, *args: object, **kwargs: object) -> T: ...
@overload
def make(axis: str, selector: Selector, *args: object, **kwargs: object) -> object: ...
def make(axis: str, selector: Selector, *args: object, **kwargs: object) -> object:
    """Build what a selector names: `target(config, *args, **kwargs)`.

    Raises:
        UnknownName: The axis has no such name, or the name no such option.
        InvalidConfig: An option has a wrong type or value, or nothing can be built of the name.
    """
    found = find(axis, selector.name)
    if (made := _MADE.get()) is not None:
        made.add((axis, selector.name))
    config = build_config(found.config, selector.options, selector.name)
    if not callable(found.target):
        raise InvalidConfig(f"{axis} {selector.name!r} is data, and nothing is built of it.")
    return found.target(config, *args, **kwargs)


@contextmanager
def watch_made() -> Generator[set[tuple[str, str]]]:
    """Collect axis and name of everything that is built inside the block."""
    seen: set[tuple[str, str]] = set()
    token = _MADE.set(seen)
    try:
        yield seen
    finally:
        _MADE.reset(token)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0].rstrip(".")
