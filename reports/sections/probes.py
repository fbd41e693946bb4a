"""What probes saw in trained models: a table for each probe and each kind of network."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
from tabulate import tabulate

from bench.api.command import EXAMPLES
from bench.api.selector import parse
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell, clean
from reports.catalog import uncapitalized
from reports.folder import RunFolder
from reports.numbers import Seen, with_interval
from reports.prose import join
from reports.ranked_table.grouping import distinguished
from results.comparable import SAME, SPLITS, comparable
from results.statistics import t_interval

KIND = "analysis"
NETWORK = ["variant", "backbone", "seed", *SAME]
"""What a trained model and all probes of it have in common."""
MOST_VALUES = 3
"""Values of a probe on the first page, from the most telling one on."""


class Probed(NamedTuple):
    """What one probe saw in networks that may be compared."""

    task: str
    probe: str
    """Its selector, and what tells these networks from others that it looked at."""
    rows: pd.DataFrame

    @property
    def single(self) -> pd.DataFrame:
        """Values without an axis."""
        return self.rows[self.rows["axis"] == ""]


def probes_section(folder: RunFolder) -> Section | None:
    """Tables of every analysis; None where nothing was looked at."""
    found = list(_seen(folder))
    if not found:
        return None
    lead = Paragraph(
        "Means over seeds, with a 95% t interval where seeds differ. Where an interval would leave "
        "the range of the metric, the lowest and the highest seed follow the mean. Each probe "
        f"looked at the first {_examples(folder)} test examples of every trained model, in whole "
        "batches. Tests begin with their shortest inputs, so that these are the shortest where "
        "lengths differ."
    )
    tables: list[Block] = [
        _table(folder, f"{seen.task}: {seen.probe}", seen.single, at)
        for at, seen in enumerate(found, start=1)
        if len(seen.single)
    ]
    for at, seen in enumerate(found, start=1):
        curves = seen.rows[seen.rows["axis"] != ""]
        tables += [
            _curve(folder, f"{seen.task}: {seen.probe}", group, at)
            for _, group in curves.groupby(["metric", "axis"], sort=True)
        ]
    return Section(key="probes", title="What the attention does", blocks=(lead, *tables))


def probed_section(folder: RunFolder) -> Section | None:
    """The first values of each probe, where most trained models were looked at; else None."""
    networks = folder.frame[folder.frame["status"] == "ok"].drop_duplicates(["kind", *NETWORK])
    kinds = networks["kind"].value_counts()
    if 2 * kinds.get(KIND, 0) < kinds.get("quality", 0):
        return None
    tables = []
    for at, seen in enumerate(_seen(folder), start=1):
        told = [*seen.single["metric"].unique()][:MOST_VALUES]
        rows = seen.single[seen.single["metric"].isin(told)]
        if len(rows):
            table = _table(folder, f"{seen.task}: {seen.probe}", rows, at)
            tables.append(replace(table, key=f"first-{table.key}"))
    if not tables:
        return None
    lead = Paragraph(
        "The first values of each probe, means over seeds with a 95% t interval, or with the "
        "lowest and the highest seed where an interval would leave the range; the others are among "
        "the details. Nothing here is tested."
    )
    title = "What the attention does, in short"
    return Section(key="probed", title=title, blocks=(lead, *tables), group="summary")


def looked_at(folder: RunFolder, where: str) -> str:
    """What a run is about in which probes looked at most of the trained models.

    Args:
        folder: The run.
        where: Title of the section that has what they saw.
    """
    probes = {parse(seen.probe.partition(" (")[0]).name for seen in _seen(folder)}
    named = f"{'probe' if len(probes) == 1 else 'probes'} {join(sorted(probes))}"
    return (
        f"This run looked into trained models (by the {named}): what was seen is in “{where}”. "
        "Scores of these models were compared, too."
    )


def probes_text(folder: RunFolder) -> str:
    """The first value of each probe for a terminal; empty where nothing was looked at.

    A probe lists its values from the most telling one on, and rows keep that order.
    """
    lines = []
    for seen in _seen(folder):
        if seen.single.empty:
            continue
        metric = str(seen.single["metric"].iloc[0])
        first = seen.single[seen.single["metric"] == metric]
        for variant, values in first.groupby("variant", sort=True):
            known, label = folder.catalog.metric(metric), folder.catalog.label(str(variant))
            value = _entry(values["value"], known.limits).text
            lines.append([seen.task, seen.probe, label, known.axis, value])
    if not lines:
        return ""
    heads = ["task", "probe", "variant", "first value", "mean"]
    table = tabulate(
        lines, heads, tablefmt="simple", disable_numparse=True, colalign=[*["left"] * 4, "right"]
    )
    return f"{table}\nAll values are in the report under “What the attention does”."


def _seen(folder: RunFolder) -> Iterator[Probed]:
    """What ended well, by task, probe and what may be compared.

    A mean is over seeds of one setting: not over networks, options of the probe, or formats.
    """
    frame = folder.frame
    rows = frame[(frame["kind"] == KIND) & (frame["status"] == "ok") & (frame["metric"] != "")]
    cells = rows.drop_duplicates("cell")[["cell", "variant", "seed", *SAME, *SPLITS]]
    groups = [
        (str(probe), group)
        for probe, mine in cells.groupby(cells["protocol"].map(_probe), sort=True)
        for group in comparable(mine)
    ]
    groups.sort(key=lambda one: str(one[1]["task"].iloc[0]))
    tasks = [folder.catalog.task_label(str(group["task"].iloc[0])) for _, group in groups]
    names = [f"{task}: {probe}" for task, (probe, _) in zip(tasks, groups, strict=True)]
    more = distinguished([group for _, group in groups], names)
    for task, (probe, group), apart in zip(tasks, groups, more, strict=True):
        yield Probed(task, clean(probe) + apart, rows[rows["cell"].isin(group["cell"])])


def _probe(protocol: str) -> str:
    """The probe that an analysis cell names in its protocol, with its options."""
    found = parse(protocol).options["probe"]
    return found[0].show() if isinstance(found, tuple) else protocol


def _examples(folder: RunFolder) -> str:
    """How many test examples probes looked at, as the analyses name it; several where they differ.

    A protocol leaves out the usual number.
    """
    frame = folder.frame
    protocols = frame[(frame["kind"] == KIND) & (frame["status"] == "ok")]["protocol"].unique()
    asked = {str(parse(one).options.get("examples", EXAMPLES)) for one in map(str, protocols)}
    return " or ".join(sorted(asked, key=lambda text: (len(text), text)))


def _table(folder: RunFolder, title: str, rows: pd.DataFrame, at: int) -> TableBlock:
    metrics = sorted(str(name) for name in rows["metric"].unique())
    heads = [Column(title="Variant")]
    for name in metrics:
        known = folder.catalog.metric(name)
        heads.append(Column(title=known.arrow, unit=known.unit, numeric=True, help=name))
    lines = [
        (
            TableCell(text=folder.catalog.label(str(variant))),
            *(
                _entry(group[group["metric"] == name]["value"], folder.catalog.metric(name).limits)
                for name in metrics
            ),
        )
        for variant, group in rows.groupby("variant", sort=True)
    ]
    return TableBlock(
        key=f"probes-{at}",
        title=title,
        columns=tuple(heads),
        rows=tuple(lines),
    )


def _curve(folder: RunFolder, where: str, rows: pd.DataFrame, at: int) -> TableBlock:
    """Values along an axis, a column a place."""
    places = sorted(float(x) for x in rows["x"].unique())
    metric, axis = (str(rows[column].iloc[0]) for column in ("metric", "axis"))
    known = folder.catalog.metric(metric)
    lines = [
        (
            TableCell(text=folder.catalog.label(str(variant))),
            *(_entry(group[group["x"] == x]["value"], known.limits) for x in places),
        )
        for variant, group in rows.groupby("variant", sort=True)
    ]
    columns = (
        Column(title="Variant"),
        *(Column(title=f"{axis} {x:g}", unit=known.unit, numeric=True) for x in places),
    )
    return TableBlock(
        key=f"probes-{at}-{metric}-{axis}",
        title=f"{where}, {uncapitalized(known.title)}",
        columns=columns,
        rows=tuple(lines),
        folded=True,
    )


def _entry(stored: pd.Series, limits: tuple[float, float]) -> TableCell:
    if stored.empty:
        return TableCell(text=NO_VALUE)
    values = [float(value) for value in stored]
    found, seen = t_interval(values), Seen.of(values)
    text = with_interval(found.estimate, found.low, found.high, limits=limits, seen=seen)
    return TableCell(text=text, sort=found.estimate)
