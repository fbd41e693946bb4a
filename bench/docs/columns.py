"""The page of columns: what `results.load` returns, what a ledger holds, and every metric."""

from collections.abc import Iterable
from dataclasses import fields

from bench.api import registry
from bench.api.documented_fields import documented_fields
from bench.api.metric import Metric
from bench.api.task import TASKS
from bench.running.catalog import known_metrics
from reports.markdown import code_span, with_code
from reports.numbers import plain
from results.frame import COLUMNS
from results.row import Record, Row

HEAD = (
    "`results.load(path).rows` returns one pandas table with a line for each measured value. "
    "Terms are those of the [glossary](glossary.md)."
)
GROUPS = {
    "quality": "Quality",
    "speed": "Speed",
    "memory": "Memory",
    "size": "Size",
    "diagnostic": "Diagnostics",
}


def columns_page() -> str:
    """The whole page."""
    parts = ["# Columns of the result tables", HEAD, "## Columns of the table"]
    parts.append(_table(("column", "meaning"), COLUMNS.items()))
    parts += ["## A line of the ledger", "A record is one finished cell."]
    parts.append(_table(("field", "meaning"), _meanings(Record).items()))
    parts += ["## A row of a record", _table(("field", "meaning"), _meanings(Row).items())]
    parts += ["## Metrics", "A metric ends in its unit where the unit is not a proportion."]
    targets = [one.target for one in registry.registrations(TASKS).values()]
    known = known_metrics(targets)
    for group, title in GROUPS.items():
        rows = [
            (name, _metric(known[name])) for name in sorted(known) if known[name].group == group
        ]
        parts += [f"### {title}", _table(("metric", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _meanings(record: type) -> dict[str, str]:
    """Fields of a dataclass with what its source says of them, or else their types."""
    types = {field.name: str(field.type) for field in fields(record)}
    return {name: said or types[name] for name, said in documented_fields(record).items()}


def _metric(metric: Metric) -> str:
    side = f"; {metric.better} is better" if metric.better != "none" else ""
    limits = [f"at least {plain(metric.low)}"] if metric.low is not None else []
    limits += [f"at most {plain(metric.high)}"] if metric.high is not None else []
    range_ = f" ({', '.join(limits)})" if limits else ""
    return f"{metric.title}, {metric.unit}{range_}{side}"


def _table(heads: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {code_span(name)} | {with_code(text)} |" for name, text in rows]
    return "\n".join([f"| {heads[0]} | {heads[1]} |", "| --- | --- |", *lines])
