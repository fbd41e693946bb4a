"""What an id hashes of a selector: nothing that has the default which it had when it was added.

Canonical text leaves defaults out already. What is left to do is for the few options whose default
has changed since they were added (`FirstDefault`): text always says them, and an id must not.
"""

from collections.abc import Mapping

from bench.api import registry
from bench.api.axes import BACKBONE_AXES, DEFAULTS, VARIANT_AXES
from bench.api.config import config_options, first_defaults
from bench.api.options import inner_axes
from bench.api.registry import Recipe
from bench.api.selector import Selector, Value, parse


def first_text(field: str, text: str) -> str:
    """The text of a cell's task, backbone or variant that its id hashes."""
    if not registry.any_default_changed():
        return text
    asked = parse(text)
    if field == "variant":
        return _first_variant(asked).show()
    return _first(field, asked).show() if registry.known(field, asked.name) else text


def _first(axis: str, selector: Selector) -> Selector:
    """A component without the options that have their first default."""
    if not registry.known(axis, selector.name):
        return selector
    config = registry.find(axis, selector.name).config
    first, usual = first_defaults(config), config_options(config())
    axes = inner_axes(config, selector.options)
    kept: dict[str, Value] = {}
    for key, value in selector.options.items():
        mine = _first_value(axes.get(key), value)
        if mine != _first_value(axes.get(key), first.get(key, usual[key])):
            kept[key] = mine
    return Selector(selector.name, kept)


def _first_value(axis: str | None, value: Value) -> Value:
    if axis is None or not isinstance(value, tuple):
        return value
    return tuple(_first(axis, one) for one in value)


def _first_variant(selector: Selector) -> Selector:
    """A variant without the axes on which its name alone means the same."""
    home = _home(selector.name)
    axes = (*VARIANT_AXES, *BACKBONE_AXES)
    own = {key: value for key, value in selector.options.items() if key not in axes}
    kept = dict(_first(home, Selector(selector.name, own)).options) if home else own
    usual = _usual(home, selector.name)
    for axis in axes:
        if axis in selector.options:
            mine = _first_value(axis, selector.options[axis])
            if mine != _first_value(axis, usual.get(axis, ())):
                kept[axis] = mine
    return Selector(selector.name, kept)


def _home(name: str) -> str:
    """The axis on which a variant's name is registered; empty if nobody did."""
    for axis in ("recipe", "mechanism", *VARIANT_AXES):
        if registry.known(axis, name):
            return axis
    return ""


def _usual(home: str, name: str) -> Mapping[str, Value]:
    """What a variant's name alone means on each axis."""
    target = registry.find(home, name).target if home else None
    own = {**target.axes, **target.fixes} if isinstance(target, Recipe) else {home: name}
    return {axis: parse(f"x[y={text}]").options["y"] for axis, text in {**DEFAULTS, **own}.items()}
