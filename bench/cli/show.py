"""`bench show`: everything known about one name."""

import json
import re
import sys
from textwrap import indent
from typing import TYPE_CHECKING, TypedDict

import click

from bench.cli import option_groups as options
from bench.cli.light_start import light_start
from bench.cli.option_words import option_lines, options_of

if TYPE_CHECKING:
    from bench.api.registry import Registration
    from bench.api.selector import Selector


TRAINING = "adam"
"""The one kind of training that there is."""
NEAR = 0.75
"""Likeness of two names from which one is offered for the other, between 0 and 1."""


@click.command("show")
@click.argument("name")
@options.plugins
@options.json_output
@light_start
def command(name: str, plugin: tuple[str, ...], as_json: bool) -> None:
    """Show one variant, task or component: paper, options, ranges.

    `bench show adam` shows the options of --training, and `bench show C01` what decides a claim.
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
    from bench.api.claim import CLAIMS
    from bench.api.errors import UnknownName
    from bench.api.selector import parse
    from bench.cli.registered import load_registry
    from bench.cli.shown_claims import claim_facts, claim_lines

    load_registry(plugins)
    asked = parse(name)
    found = [
        registry.find(axis, asked.name)
        for axis in AXES
        if asked.name in registry.registrations(axis)
    ]
    if asked.name in registry.registrations(CLAIMS) and not asked.options:
        claim = claim_facts(registry.find(CLAIMS, asked.name), plugins)
        return json.dumps([claim], indent=1) if as_json else claim_lines(claim)
    if asked.name == TRAINING:
        facts = [_of_training(asked)]
    elif not found:
        raise UnknownName(_no_such_name(asked.name))
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


def _no_such_name(name: str) -> str:
    """What to say of an unknown name. Of some 400 names one is like any word, so few are near."""
    from bench.api import registry
    from bench.api.axes import AXES
    from bench.api.errors import MOST_QUOTED, suggestion
    from bench.api.plain_text import shortened
    from bench.cli.list import listed_metrics
    from bench.running.presets import PRESETS

    if name in PRESETS:
        return f"{name!r} is a preset; `bench list presets` describes it."
    if name in listed_metrics():
        return f"{name!r} is a metric; `bench list metrics` describes it."
    known = {known for axis in AXES for known in registry.registrations(axis)}
    hint = suggestion(name, known, NEAR)
    name = shortened(name, MOST_QUOTED)
    return (
        f"no variant, task or component named {name!r}{hint} `bench list variants` and "
        "`bench list tasks` show names."
    )


def _of_training(asked: "Selector") -> "Facts":
    """The options of `--training`.

    Raises:
        InvalidConfig: An option has a wrong name or value.
    """
    from bench.api.config import config_options
    from bench.api.selector import Selector
    from bench.training.protocol import AdamProtocol, read_protocol, refuse_small_numbers

    refuse_small_numbers(asked)
    return {
        "name": TRAINING,
        "axis": "training",
        "what": (AdamProtocol.__doc__ or "").removesuffix("."),
        "about": "",
        "file": sys.modules[AdamProtocol.__module__].__file__ or "",
        "options": options_of(AdamProtocol),
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
        "options": options_of(registered.config),
    }
    if isinstance(registered.target, Recipe):
        facts["axes"] = {**registered.target.axes, **registered.target.fixes}
    if registered.axis in ("recipe", "mechanism") or registered.default_task:
        facts["selector"] = resolve(registered.name).complete.show()
    return facts


def _as_lines(facts: Facts) -> str:
    """For people: what the title page says is not said above it."""
    page = facts.get("about", "")
    lines = []
    for key, value in facts.items():
        if key in ("what", "paper") and _says(page, str(value)):
            continue
        if key == "options":
            lines += [line for option in facts["options"] for line in option_lines(option)]
        elif key == "axes":
            lines += [f"axis      {axis} = {choice}" for axis, choice in facts["axes"].items()]
        elif key == "about" and value:
            lines.append(indent(f"\n{value}\n", " " * 10))
        elif value:
            lines.append(f"{key:<9} {value}")
    return "\n".join(lines)


def _says(page: str, text: str) -> bool:
    """Whether a title page has every word of a text, or the address in it."""
    addresses = re.findall(r"https?://[^\s,]+", text)
    if addresses:
        return all(address in page for address in addresses)
    words = re.findall(r"\w+", text.lower())
    return bool(page) and set(words) <= set(re.findall(r"\w+", page.lower()))
