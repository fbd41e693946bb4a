"""`bench show`: everything known about one name."""

import json
import sys
from dataclasses import fields
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Literal, TypedDict, get_args, get_origin, get_type_hints

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start

if TYPE_CHECKING:
    from bench.api.config import Config
    from bench.api.registry import Registration
    from bench.api.selector import Selector


TRAINING = "adam"
"""The one kind of training that there is."""


@click.command("show")
@click.argument("name")
@options.plugins
@options.json_output
@light_start
def command(name: str, plugin: tuple[str, ...], as_json: bool) -> None:
    """Show the variant, task or component NAME: paper, options, ranges, default task.

    `bench show adam` shows the options of --training.
    """
    click.echo(showing(name, plugin, as_json))


def showing(name: str, plugins: tuple[str, ...], as_json: bool) -> str:
    """Everything known about one name; options behind it are checked and written out.

    Raises:
        UnknownName: No registry has it.
        InvalidConfig: An option has a wrong name or value.
    """
    from bench.api import registry
    from bench.api.axes import AXES
    from bench.api.errors import UnknownName
    from bench.api.selector import parse
    from bench.cli.registered import load_registry

    load_registry(plugins)
    asked = parse(name)
    found = [
        registry.find(axis, asked.name)
        for axis in AXES
        if asked.name in registry.registrations(axis)
    ]
    if asked.name == TRAINING:
        facts = [_of_training(asked)]
    elif not found:
        known = [n for axis in AXES for n in registry.registrations(axis)]
        raise UnknownName.among("variant, task or component", asked.name, known, see="bench list")
    else:
        facts = [_facts(registered) for registered in found]
        if asked.options:
            facts = _with_options(asked, facts, found)
    if as_json:
        return json.dumps(facts, indent=1)
    seen: set[str] = set()
    for one in facts:
        page, one["about"] = one["about"], "" if one["about"] in seen else one["about"]
        seen.add(page)
    return "\n\n".join(_as_lines(one) for one in facts)


def _of_training(asked: "Selector") -> "Facts":
    """The options of `--training`.

    Raises:
        InvalidConfig: An option has a wrong name or value.
    """
    from bench.api.config import config_options
    from bench.api.selector import Selector
    from bench.training.protocol import AdamProtocol, read_protocol

    return {
        "name": TRAINING,
        "axis": "training",
        "what": (AdamProtocol.__doc__ or "").removesuffix("."),
        "about": "",
        "file": sys.modules[AdamProtocol.__module__].__file__ or "",
        "options": _options(AdamProtocol),
        "selector": Selector(TRAINING, config_options(read_protocol(asked))).show(),
    }


def _with_options(
    asked: "Selector", facts: "list[Facts]", found: "list[Registration[object]]"
) -> "list[Facts]":
    """Those of several parts of one name that have these options, written out.

    Raises:
        InvalidConfig: None of them has.
    """
    from bench.api.errors import InvalidConfig

    kept: list[Facts] = []
    wrong: list[InvalidConfig] = []
    for one, registered in zip(facts, found, strict=True):
        try:
            one["selector"] = _written_out(registered, asked)
        except InvalidConfig as error:
            wrong.append(error)
        else:
            kept.append(one)
    if not kept:
        raise wrong[0]
    return kept


def _written_out(registered: "Registration[object]", asked: "Selector") -> str:
    """The selector with every option written out; a wrong option is an error that names it."""
    from bench.api.options import complete
    from bench.api.resolve import resolve

    if registered.axis == "recipe" or registered.default_task:
        return resolve(asked).complete.show()
    return complete(registered.axis, asked).show()


class Facts(TypedDict, total=False):
    """What is printed of one name, in this order."""

    name: str
    axis: str
    what: str
    paper: str
    about: str
    deviations: str
    does_not_show: str
    default_task: str
    file: str
    options: list[dict[str, str]]
    axes: dict[str, str]
    selector: str


def _facts(registered: "Registration[object]") -> Facts:
    from bench.api.registry import Recipe
    from bench.api.resolve import resolve

    cited = registered.citation
    facts: Facts = {
        "name": registered.name,
        "axis": registered.axis,
        "what": registered.title,
        "paper": f"{cited.text}, {cited.url}, {cited.where}".rstrip(", ") if cited else "",
        "about": registered.title_page(),
        "deviations": registered.deviations,
        "does_not_show": registered.does_not_show,
        "default_task": registered.default_task.task if registered.default_task else "",
        "file": sys.modules[registered.module].__file__ or "",
        "options": _options(registered.config),
    }
    if isinstance(registered.target, Recipe):
        facts["axes"] = {**registered.target.axes, **registered.target.fixes}
    if registered.axis in ("recipe", "mechanism") or registered.default_task:
        facts["selector"] = resolve(registered.name).complete.show()
    return facts


def _options(config: "type[Config]") -> list[dict[str, str]]:
    from bench.api.config import search_ranges
    from bench.api.documented_fields import documented_fields

    meanings = documented_fields(config)
    ranges = search_ranges(config)
    hints = get_type_hints(config)
    return [
        {
            "option": field.name,
            "default": str(field.default),
            "type": _written(hints[field.name]),
            "range": str(ranges.get(field.name, "")),
            "meaning": meanings[field.name],
        }
        for field in fields(config)
    ]


def _written(kind: object) -> str:
    """A type as one reads it: its name, or the values that are allowed."""
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    return getattr(kind, "__name__", str(kind))


def _as_lines(facts: Facts) -> str:
    lines = []
    for key, value in facts.items():
        if key == "options":
            for o in facts["options"]:
                told = f"option    {o['option']} = {o['default']} ({o['type']}) {o['range']}"
                lines += [told.rstrip(), *_folded(o["meaning"])]
        elif key == "axes":
            lines += [f"axis      {axis} = {choice}" for axis, choice in facts["axes"].items()]
        elif key == "about" and value:
            lines.append(indent(f"\n{value}\n", " " * 10))
        elif value:
            lines.append(f"{key:<9} {value}")
    return "\n".join(lines)


def _folded(text: str) -> list[str]:
    """Lines of a text below the option that it is about."""
    space = " " * 14
    return wrap(text, 100, initial_indent=space, subsequent_indent=space)
