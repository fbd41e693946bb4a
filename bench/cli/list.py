"""`bench list`: everything that is registered."""

import json
from typing import TYPE_CHECKING

import click

from bench.cli import option_groups as options
from bench.cli.fitted_table import fitted_table, terminal_width
from bench.cli.light_start import light_start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.api.metric import Metric
    from bench.api.registry import Registration

KINDS = ("variants", "tasks", "backbones", "probes", "presets", "metrics", "claims")
"""What can be listed beside the components of an axis; each may be typed in the singular, too."""


@click.command("list")
@click.argument("kind", default="variants")
@options.plugins
@click.option("--matrix", is_flag=True, help="Where each variant can stand, and why not elsewhere.")
@options.json_output
@light_start
def command(kind: str, plugin: tuple[str, ...], matrix: bool, as_json: bool) -> None:
    """List what is registered: variants, tasks, presets and more.

    KIND is variants, tasks, backbones, probes, presets, metrics, claims, or an axis for its
    components.
    """
    kind = f"{kind}s" if f"{kind}s" in KINDS else kind
    if matrix and kind != "variants":
        raise click.UsageError(f"--matrix is about variants, not {kind}.")
    click.echo(places(plugin, as_json) if matrix else listing(kind, plugin, as_json))


def listing(kind: str, plugins: tuple[str, ...], as_json: bool) -> str:
    """A table of what is registered.

    Raises:
        UnknownName: There is no such kind.
    """
    from bench.api import registry
    from bench.api.axes import AXES
    from bench.api.errors import UnknownName
    from bench.cli.registered import load_registry
    from bench.running.presets import PRESETS

    load_registry(plugins)
    if kind == "presets":
        rows = [[p.name, p.summary] for p in PRESETS.values()]
        return _table(rows, ["preset", "what"], as_json)
    if kind == "metrics":
        return _table(_metric_rows(), ["metric", "title", "unit", "better"], as_json)
    if kind == "variants":
        return _table(_variant_rows(), ["variant", "what", "paper", "default_task"], as_json)
    axis = kind.removesuffix("s") if kind in KINDS else kind
    if axis not in AXES:
        raise UnknownName.among("kind", kind, (*KINDS, *AXES))
    rows = [[name, e.title, _paper(e)] for name, e in registry.registrations(axis).items()]
    return _table(rows, [axis, "what", "paper"], as_json)


def _variant_rows() -> list[list[str]]:
    from bench.api import registry

    rows = []
    for name, registered in registry.listed_variants().items():
        mark = " (control)" if registered.control and "(control)" not in registered.title else ""
        default_task = (
            registered.default_task.task if registered.default_task else ""
        ) or "no task yet"
        rows.append([name, registered.title + mark, _paper(registered), default_task])
    return rows


def places(plugins: tuple[str, ...], as_json: bool) -> str:
    """Variants by regimes; where one cannot stand, the reason."""
    from tabulate import tabulate

    from bench.api import registry
    from bench.api.call import REGIMES
    from bench.api.decoder import DECODERS
    from bench.api.resolve import resolve
    from bench.cli.registered import load_registry
    from bench.conformance.place import refusals

    load_registry(plugins)
    found: dict[str, dict[str, str]] = {}
    for name in registry.listed_variants():
        spec = resolve(name)
        decoder = spec.fixes.get("decoder")
        attends = decoder is None or registry.find(DECODERS, decoder.name).target.attends
        refused = refusals(spec) if attends else dict.fromkeys(REGIMES, f"{name} has no attention")
        found[name] = {regime: refused.get(regime, "") for regime in REGIMES}
    if as_json:
        return json.dumps(found, indent=1)
    reasons = list(dict.fromkeys(r for row in found.values() for r in row.values() if r))
    rows = [
        [name, *(f"no ({reasons.index(r) + 1})" if r else "yes" for r in row.values())]
        for name, row in found.items()
    ]
    table = tabulate(rows, ["variant", *REGIMES], tablefmt="simple", colalign=["left"] * 5)
    notes = "\n".join(f"{number}: {reason}" for number, reason in enumerate(reasons, 1))
    return f"{table}\n\n{notes}"


def listed_metrics() -> "Mapping[str, Metric]":
    """Every metric by its name."""
    from bench.api import registry
    from bench.api.task import TASKS
    from bench.running.catalog import known_metrics

    return known_metrics([e.target for e in registry.registrations(TASKS).values()])


def _metric_rows() -> list[list[str]]:
    return [
        [name, metric.title, metric.unit, metric.better]
        for name, metric in sorted(listed_metrics().items())
    ]


def _paper(registered: "Registration[object]") -> str:
    return registered.citation.text if registered.citation else ""


def _table(rows: list[list[str]], heads: list[str], as_json: bool) -> str:
    if as_json:
        return json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=1)
    titles = [head.replace("_", " ") for head in heads]
    return fitted_table(rows, titles, terminal_width())
