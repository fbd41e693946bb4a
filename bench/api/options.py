"""Options of a selector, as what it names declares them: written out, left out, looked into."""

from collections.abc import Mapping

from bench.api import registry
from bench.api.config import (
    Config,
    build_config,
    config_options,
    declared_axes,
    default_options,
    first_defaults,
)
from bench.api.errors import InvalidConfig
from bench.api.registry import find
from bench.api.selector import Selector, Value, show_value


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
    if not selector.options and not registry.any_default_changed():
        return selector
    written = config_options(build_config(found.config, selector.options, selector.name))
    usual = default_options(found.config)
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
    if not registry.any_default_changed():
        return False
    found = find(axis, selector.name)
    written = config_options(build_config(found.config, selector.options, selector.name))
    axes = inner_axes(found.config, written)
    return bool(first_defaults(found.config)) or any(
        _default_moved(inside, written[key]) for key, inside in axes.items()
    )


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
    return {key: axis for key, axis in axes.items() if registry.has_axis(axis)}


def options_of(value: Value, owner: str = "option") -> tuple[Selector, ...]:
    """Read an option that must be names joined by '+'.

    Raises:
        InvalidConfig: The value is no name.
    """
    if isinstance(value, tuple):
        return value
    raise InvalidConfig(f"{owner} takes a name, got {show_value(value)}.")
