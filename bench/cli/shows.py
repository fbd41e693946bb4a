"""What `list`, `show`, `verify`, `report`, `data` and `env` do."""

import json
import sys
from dataclasses import fields
from pathlib import Path
from textwrap import indent
from typing import Any, get_type_hints

import click
from tabulate import tabulate

from bench.api import registry
from bench.api.call import REGIMES
from bench.api.config import Config, search_ranges
from bench.api.decoder import DECODERS
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import AXES, Recipe, Registration
from bench.api.resolve import resolve
from bench.api.selector import Selector, parse, parse_list
from bench.api.task import TASKS, Task
from bench.cli.options import RunOptions
from bench.cli.runs import load_everything
from bench.running.presets import PRESETS

KINDS = ("variants", "tasks", "backbones", "probes", "presets", "metrics")


def listing(kind: str, plugins: tuple[str, ...], as_json: bool) -> str:
    """A table of what is registered."""
    load_everything(plugins)
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
    rows = []
    for name, registered in registry.listed_variants().items():
        mark = " (control)" if registered.control and "(control)" not in registered.title else ""
        default_task = (
            registered.default_task.task if registered.default_task else ""
        ) or "no task yet"
        rows.append([name, registered.title + mark, _paper(registered), default_task])
    return rows


def matrix(plugins: tuple[str, ...], as_json: bool) -> str:
    """Variants by regimes; where one cannot stand, the reason."""
    from bench.conformance.place import refusals

    load_everything(plugins)
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


def _metric_rows() -> list[list[str]]:
    from bench.running.catalog import known_metrics

    targets: list[type[Task]] = [e.target for e in registry.registrations(TASKS).values()]
    return [
        [name, metric.title, metric.unit, metric.better]
        for name, metric in sorted(known_metrics(targets).items())
    ]


def _paper(registered: Registration[object]) -> str:
    return registered.citation.text if registered.citation else ""


def _table(rows: list[list[str]], heads: list[str], as_json: bool) -> str:
    if as_json:
        return json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=1)
    return tabulate(rows, heads, tablefmt="simple")


def showing(name: str, plugins: tuple[str, ...], as_json: bool) -> str:
    """Everything known about one name; options behind it are checked and written out.

    Raises:
        UnknownName: No registry has it.
        InvalidConfig: An option has a wrong name or value.
    """
    load_everything(plugins)
    asked = parse(name)
    found = [
        registry.find(axis, asked.name)
        for axis in AXES
        if asked.name in registry.registrations(axis)
    ]
    if not found:
        known = [n for axis in AXES for n in registry.registrations(axis)]
        raise UnknownName.among("variant, task or component", asked.name, known, see="bench list")
    facts = [_facts(registered) for registered in found]
    if asked.options:
        for one, registered in zip(facts, found, strict=True):
            one["selector"] = _written_out(registered, asked)
    if as_json:
        return json.dumps(facts, indent=1)
    seen: set[str] = set()
    for one in facts:
        page, one["about"] = one["about"], "" if one["about"] in seen else one["about"]
        seen.add(page)
    return "\n\n".join(_as_lines(one) for one in facts)


def _written_out(registered: Registration[object], asked: Selector) -> str:
    """The canonical selector of a name with options; a wrong option is an error that names it."""
    if registered.axis == "recipe" or registered.default_task:
        return resolve(asked).canonical.show()
    return registry.canonical(registered.axis, asked).show()


def tasks_page(plugins: tuple[str, ...], data_dir: str) -> str:
    """Every task as one Markdown page."""
    from bench.cli.task_pages import tasks_page as page

    load_everything(plugins)
    return page(Path(data_dir) if data_dir else None)


def _facts(registered: Registration[object]) -> dict[str, Any]:
    cited = registered.citation
    facts: dict[str, Any] = {
        "name": registered.name,
        "axis": registered.axis,
        "what": registered.title,
        "paper": f"{cited.text}, {cited.url}, {cited.where}".rstrip(", ") if cited else "",
        "about": registered.title_page(),
        "deviations": registered.deviations,
        "default_task": registered.default_task.task if registered.default_task else "",
        "file": sys.modules[registered.module].__file__ or "",
        "options": _options(registered.config),
    }
    if isinstance(registered.target, Recipe):
        facts["axes"] = {**registered.target.axes, **registered.target.fixes}
    if registered.axis in ("recipe", "mechanism") or registered.default_task:
        facts["selector"] = resolve(registered.name).canonical.show()
    return facts


def _options(config: type[Config]) -> list[dict[str, str]]:
    ranges = search_ranges(config)
    hints = get_type_hints(config)
    return [
        {
            "option": field.name,
            "default": str(field.default),
            "type": getattr(hints[field.name], "__name__", str(hints[field.name])),
            "range": str(ranges.get(field.name, "")),
        }
        for field in fields(config)
    ]


def _as_lines(facts: dict[str, Any]) -> str:
    lines = []
    for key, value in facts.items():
        if key == "options":
            lines += [
                f"option    {o['option']} = {o['default']} ({o['type']}) {o['range']}".rstrip()
                for o in value
            ]
        elif key == "axes":
            lines += [f"axis      {axis} = {choice}" for axis, choice in value.items()]
        elif key == "about" and value:
            lines.append(indent(f"\n{value}\n", " " * 10))
        elif value:
            lines.append(f"{key:<9} {value}")
    return "\n".join(lines)


def verify(
    names: tuple[str, ...], impl: str, plugins: tuple[str, ...], jobs: int, as_json: bool
) -> int:
    """Certify variants in fresh processes; 0 if all are green."""
    from bench.conformance import Certificate, as_text
    from bench.running.processes import ProcessExecutor
    from bench.running.request import asked_variants
    from bench.running.runner import Job
    from bench.running.worker import WorkerSettings

    load_everything(plugins)
    specs = asked_variants(",".join(names))
    todo = [
        Job(
            kind="certificate",
            label=name,
            variant=spec.canonical.show(),
            impl=impl,
            thorough=True,
            seconds=6.0,
        )
        for name, spec in specs
    ]
    executor = ProcessExecutor(WorkerSettings(plugins=plugins))
    at_once = RunOptions(jobs=jobs).jobs_at_once
    done = {
        job.label: Certificate.from_json(job.variant, result.certificate)
        for job, result in executor.run(todo, at_once, lambda job, share: None)
    }
    certificates = [done[job.label] for job in todo]
    if as_json:
        found = {c.variant: {**c.to_json(), "green": c.green()} for c in certificates}
        click.echo(json.dumps(found, indent=1))
    else:
        click.echo(as_text(certificates))
    return 0 if all(certificate.green() for certificate in certificates) else 1


def report(
    folder: Path,
    out: Path | None,
    *,
    publish: bool,
    pack: Path | None,
    export: bool,
    handbook: Path | None,
    figures: Path | None,
    merge: tuple[Path, ...],
    tasks: str,
) -> str:
    """Write the report of a run folder or a pack, after adding other runs to it if asked.

    Raises:
        InvalidConfig: A report of some tasks would overwrite that of the whole run, or a pack was
            given and no folder to write to.
    """
    from reports.export import export_tables
    from reports.handbook import write_handbook
    from reports.pictures import write_figures
    from reports.render import render
    from results import store
    from results.pack import open_run, write_pack

    alone = [one.name for one in parse_list(tasks)] if tasks else []
    if alone and out is None:
        raise InvalidConfig(
            "report: --tasks would overwrite the report of the whole run; give --out."
        )
    if folder.is_file() and out is None:
        raise InvalidConfig(f"report: {folder} is a pack, which holds no report; give --out.")
    if merge:
        store.merge(folder, merge)
    written = render(folder, publish=publish, out=out, tasks=alone)
    lines = [f"report: {written.html}", f"Markdown: {written.markdown}"]
    if pack is not None:
        lines.append(f"pack: {write_pack(open_run(folder), pack)}")
    if export:
        tables = export_tables(folder, (out or folder) / "tables", publish=publish)
        lines += [f"table: {path}" for path in tables]
    if handbook is not None:
        lines.append(f"handbook: {write_handbook(folder, handbook)}")
    if figures is not None:
        lines += [f"figure: {path}" for path in write_figures(folder, figures, alone)]
    return "\n".join(lines)


def data_sets(data_dir: str) -> str:
    """Data sets, and what a run would use now."""
    from tasks.data.files import data_folder
    from tasks.data.hub import FETCHABLE, fetch_command, read_copy

    directory = data_folder(Path(data_dir) if data_dir else None)
    readers: dict[str, list[Registration[type[Task]]]] = {name: [] for name in FETCHABLE}
    for task in registry.registrations(TASKS).values():
        for name in task.target.data_sets:
            readers.setdefault(name, []).append(task)
    rows = []
    for name, tasks in sorted(readers.items()):
        entry = FETCHABLE.get(name)
        if directory is not None and (directory / name).is_dir():
            where = str(directory / name)
        elif entry is not None and read_copy(name, None) is not None:
            where = "fetched copy in the cache"
        else:
            where = f"not here; {fetch_command(name)}" if entry else "not here; no hub copy"
        licenses = (
            [entry.license] if entry else [task.target.data_license.name for task in tasks[:1]]
        )
        used = ", ".join(task.name for task in tasks)
        rows.append([name, used, entry.dataset if entry else "", *licenses, where])
    heads = ["data set", "tasks", "hub id", "license", "where"]
    return tabulate(rows, heads, tablefmt="simple", maxcolwidths=[None, 30, None, 50, None])


def fetch(name: str) -> str:
    """Download a data set from the hub."""
    from tasks.data import hub

    folder = hub.fetch(name)
    copy = hub.read_copy(name)
    assert copy is not None, "a fetched copy can be read"
    told = f"{name}: revision {copy.revision}, {len(copy.files)} files in {folder}"
    if hub.UNPINNED in copy.revision:
        told += (
            "\nWarning: no commit of this data set is pinned here, so another machine may fetch "
            "other data; compare the revisions that reports print."
        )
    return told


def environment(as_json: bool) -> str:
    """Facts of this machine."""
    import torch

    from results.environment import collect

    facts = collect(torch.get_num_threads()).to_json()
    if as_json:
        return json.dumps(facts, indent=1)
    return "\n".join(f"{key:<15} {value}" for key, value in facts.items())
