"""What probes saw in trained models: one table a task."""

import pandas as pd
from tabulate import tabulate

from bench.api.selector import parse
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell, clean
from reports.folder import RunFolder
from reports.numbers import with_interval
from results.statistics import t_interval

KIND = "analysis"


def probes_section(folder: RunFolder) -> Section | None:
    """Tables of every analysis; None where nothing was looked at."""
    frame = folder.frame
    rows = frame[(frame["kind"] == KIND) & (frame["metric"] != "") & (frame["axis"] == "")]
    if rows.empty:
        return None
    lead = Paragraph(
        "Means over seeds, with a 95% t interval where seeds differ. Each probe looked at test "
        "examples of every trained model."
    )
    groups = rows.assign(looked=rows["protocol"].map(_probe)).groupby(["task", "looked"])
    tables: list[Block] = [
        _table(folder, f"{folder.catalog.task_label(str(task))}: {clean(looked)}", group, at)
        for at, ((task, looked), group) in enumerate(groups, start=1)
    ]
    curves = frame[(frame["kind"] == KIND) & (frame["axis"] != "")]
    tables += [
        _curve(folder, str(task), str(metric), group)
        for (task, metric), group in curves.groupby(["task", "metric"], sort=True)
    ]
    return Section(key="probes", title="What the attention does", blocks=(lead, *tables))


def probes_text(folder: RunFolder) -> str:
    """The first value of each probe for a terminal; empty where nothing was looked at.

    A probe lists its values from the most telling one on, and rows keep that order.
    """
    frame = folder.frame
    rows = frame[(frame["kind"] == KIND) & (frame["metric"] != "") & (frame["axis"] == "")]
    if rows.empty:
        return ""
    lines = []
    groups = rows.assign(looked=rows["protocol"].map(_probe))
    for (task, looked), group in groups.groupby(["task", "looked"], sort=True):
        metric = str(group["metric"].iloc[0])
        first = group[group["metric"] == metric]
        for variant, values in first.groupby("variant", sort=True):
            known, label = folder.catalog.metric(metric), folder.catalog.label(str(variant))
            where = (folder.catalog.task_label(str(task)), clean(looked))
            lines.append([*where, label, known.axis, _entry(values["value"]).text])
    heads = ["task", "probe", "variant", "first value", "mean"]
    table = tabulate(
        lines, heads, tablefmt="simple", disable_numparse=True, colalign=[*["left"] * 4, "right"]
    )
    return f"{table}\nAll values are in the report under “What the attention does”."


def _probe(protocol: str) -> str:
    """The probe that an analysis cell names in its protocol."""
    found = parse(protocol).options["probe"]
    return found[0].name if isinstance(found, tuple) else protocol


def _table(folder: RunFolder, title: str, rows: pd.DataFrame, at: int) -> TableBlock:
    metrics = sorted(str(name) for name in rows["metric"].unique())
    heads = [Column(title="Variant")]
    for name in metrics:
        known = folder.catalog.metric(name)
        heads.append(Column(title=known.arrow, unit=known.unit, numeric=True, help=name))
    lines = [
        (
            TableCell(text=folder.catalog.label(str(variant))),
            *(_entry(group[group["metric"] == name]["value"]) for name in metrics),
        )
        for variant, group in rows.groupby("variant", sort=True)
    ]
    return TableBlock(
        key=f"probes-{at}",
        title=title,
        columns=tuple(heads),
        rows=tuple(lines),
    )


def _curve(folder: RunFolder, task: str, metric: str, rows: pd.DataFrame) -> TableBlock:
    """Values along an axis, a column a place."""
    places = sorted(float(x) for x in rows["x"].unique())
    known = folder.catalog.metric(metric)
    axis = str(rows["axis"].iloc[0])
    lines = [
        (
            TableCell(text=folder.catalog.label(str(variant))),
            *(_entry(group[group["x"] == x]["value"]) for x in places),
        )
        for variant, group in rows.groupby("variant", sort=True)
    ]
    columns = (
        Column(title="Variant"),
        *(Column(title=f"{axis} {x:g}", unit=known.unit, numeric=True) for x in places),
    )
    title = f"{folder.catalog.task_label(task)}: {known.title}"
    key = f"{metric}-{task}"
    return TableBlock(key=key, title=title, columns=columns, rows=tuple(lines), folded=True)


def _entry(values: pd.Series) -> TableCell:
    if values.empty:
        return TableCell(text=NO_VALUE)
    found = t_interval([float(value) for value in values])
    text = with_interval(found.estimate, found.low, found.high)
    return TableCell(text=text, sort=found.estimate)
