"""The parts of a report that account for everything: holes, machines, commands."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.api.cell import Cell, parse_label
from bench.api.errors import InvalidSelector
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell, clean
from reports.folder import RunFolder
from reports.numbers import counted
from results.published_commands import DATA_DIR

STATUS_TEXT = {
    "refused": "refused",
    "out_of_memory": "out of memory",
    "timeout": "timeout",
    "diverged": "diverged",
    "failed": "failed",
    "other_code": "of other code",
}


def counts(folder: RunFolder) -> str:
    """How many cells ended how."""
    found = Counter[str](outcome.record.status for outcome in folder.outcomes)
    parts = [f"{found['ok']} with values"]
    parts += [f"{found[status]} {text}" for status, text in STATUS_TEXT.items() if found[status]]
    if folder.unfinished:
        parts.append(f"{len(folder.unfinished)} not run yet")
    left_out = folder.plan.get("left_out") or ()
    if left_out:
        parts.append(f"{len(left_out)} left out")
    return ", ".join(parts)


def holes_section(folder: RunFolder) -> Section:
    """Cells without a value, or without one of their metrics, with reason and command."""
    groups: dict[tuple[str, str, str, str, str], list[Cell]] = {}
    for outcome in folder.outcomes:
        cell, record = outcome.cell, outcome.record
        if record.status != "ok":
            reason = (STATUS_TEXT[record.status], cell.kind, cell.task, cell.variant, record.detail)
            groups.setdefault(reason, []).append(cell)
        for one in outcome.lost:
            title = folder.catalog.metric(one.metric).title
            text = f"{title}: {one.detail}"
            reason = (STATUS_TEXT[one.status], cell.kind, cell.task, cell.variant, text)
            groups.setdefault(reason, []).append(cell)
    blocks: list[Block] = [Paragraph(folder.torn, "warning")] if folder.torn else []
    if groups:
        bad = [(reason[0], cells, reason[-1]) for reason, cells in groups.items()]
        blocks.append(_cells_table(folder, "holes-table", "Cells without a value", bad))
    else:
        blocks.append(Paragraph("Every finished cell has a value."))
    kept = _kept_results(folder)
    blocks += [kept] if kept else []
    if folder.unfinished:
        waiting = [("not run yet", [_cell(label)], "") for label in folder.unfinished]
        title = "Planned cells that have not run"
        blocks.append(_cells_table(folder, "unfinished", title, waiting, folded=len(waiting) > 20))
    blocks.append(_left_out(folder))
    return Section(key="holes", title="What is missing, and why", blocks=tuple(blocks))


def _kept_results(folder: RunFolder) -> TableBlock | None:
    """Values of cells whose code or data have changed since; they are in no ranking."""
    lines = []
    for outcome in folder.of_kind("quality", "other_code"):
        metric = folder.catalog.primary(outcome.cell.task)
        for row in outcome.record.rows:
            if (row.metric, row.split, row.axis, row.baseline) == (metric, "test", "", ""):
                value = TableCell(text=f"{row.value:.3g}", sort=row.value)
                lines.append((*_place(folder, outcome.cell), TableCell(text=clean(metric)), value))
    if not lines:
        return None
    columns = ("kind", "task", "variant", "seed", "metric", "value")
    return TableBlock(
        key="kept-results",
        title="Results of other code that were kept, and are not ranked",
        columns=tuple(Column(title=name, numeric=name in ("seed", "value")) for name in columns),
        rows=tuple(lines),
        folded=len(lines) > 20,
    )


def _cells_table(
    folder: RunFolder,
    key: str,
    title: str,
    rows: Iterable[tuple[str, Sequence[Cell | str], str]],
    *,
    folded: bool = False,
) -> TableBlock:
    """One line for each reason, with the command of its first cell."""
    lines = []
    for status, cells, reason in rows:
        label = cells[0] if isinstance(cells[0], str) else cells[0].label
        lines.append(
            (
                TableCell(text=status),
                *_place(folder, *cells),
                TableCell(text=clean(reason) or NO_VALUE),
                _command(folder, folder.command(label)),
            )
        )
    columns = ("status", "kind", "task", "variant", "seed", "reason", "command")
    return TableBlock(
        key=key,
        title=title,
        columns=tuple(Column(title=name, numeric=name == "seed") for name in columns),
        rows=tuple(lines),
        folded=folded,
    )


def _cell(label: str) -> Cell | str:
    try:
        return parse_label(label)
    except InvalidSelector:
        return label


def _place(
    folder: RunFolder, *cells: Cell | str
) -> tuple[TableCell, TableCell, TableCell, TableCell]:
    """Kind, task, variant and seeds; a label that cannot be read is shown whole."""
    first = cells[0]
    if isinstance(first, str):
        empty = TableCell(text=NO_VALUE)
        return empty, empty, TableCell(text=clean(first)), empty
    seeds = [str(cell.seed) for cell in cells if not isinstance(cell, str)]
    return (
        TableCell(text=first.kind),
        TableCell(text=folder.catalog.task_label(first.task)),
        TableCell(text=folder.catalog.label(first.variant)),
        TableCell(text=", ".join(seeds), sort=first.seed),
    )


def _left_out(folder: RunFolder) -> Block:
    entries: Iterable[Mapping[str, Any]] = folder.plan.get("left_out") or ()
    lines = [
        (
            *_place(folder, _cell(str(entry.get("label", ""))))[1:],
            TableCell(text=clean(entry.get("reason") or "no reason was stored.")),
            _command(folder, clean(entry.get("command") or "")),
        )
        for entry in entries
    ]
    if not lines:
        return Paragraph("The plan left no cell out.")
    columns = ("task", "variant", "seed", "reason", "command that runs it")
    return TableBlock(
        key="left-out",
        title="Cells that the plan left out",
        columns=tuple(Column(title=name, numeric=name == "seed") for name in columns),
        rows=tuple(lines),
        folded=len(lines) > 20,
    )


def _command(folder: RunFolder, command: str) -> TableCell:
    """A command as a reader may see it; a dash where there is none."""
    if not command:
        return TableCell(text=NO_VALUE)
    return TableCell(text=clean(folder.shown(command)), code=True)


def environment_section(folder: RunFolder) -> Section:
    """Machines and versions behind the numbers."""
    blocks: list[Block] = []
    # a file is written at every start, also where no cell runs after it
    used = Counter(outcome.record.environment for outcome in folder.outcomes)
    known = {name: facts for name, facts in folder.environments.items() if name in used}
    if len(used) > 1:
        blocks.append(
            Paragraph(
                "Cells of this run have several environments. Times of different environments must "
                "not be compared.",
                "warning",
            )
        )
    for at, (name, facts) in enumerate(known.items(), start=1):
        rows = [
            (TableCell(text=clean(key)), TableCell(text=clean(value)))
            for key, value in _flat("", facts)
        ]
        blocks.append(
            TableBlock(
                key=f"environment-{at}",
                title=f"Environment {clean(name)}, {counted(used[name], 'cell')}",
                columns=(Column(title="fact"), Column(title="value")),
                rows=tuple(rows),
            )
        )
    if not known:
        blocks.append(Paragraph("No environment was stored.", "warning"))
    return Section(key="environment", title="Environment", blocks=tuple(blocks))


def _flat(prefix: str, facts: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    for key, value in facts.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            yield from _flat(name, value)
        else:
            yield name, value


def commands_section(folder: RunFolder) -> Section:
    """The command of every cell, where the numbers of the tables link to."""
    lines = [
        (
            TableCell(text=outcome.record.status.replace("_", " ")),
            *_place(folder, outcome.cell),
            TableCell(text=f"{outcome.record.seconds:.1f}", sort=round(outcome.record.seconds, 3)),
            _command(folder, folder.command(outcome.cell.label)),
        )
        for outcome in folder.outcomes
    ]
    columns = [Column(title=name) for name in ("status", "kind", "task", "variant")]
    columns += [Column(title="seed", numeric=True), Column(title="time", unit="s", numeric=True)]
    table = TableBlock(
        key="commands-table",
        title="Command of every finished cell",
        columns=(*columns, Column(title="command")),
        rows=tuple(lines),
        anchors=tuple(outcome.anchor for outcome in folder.outcomes),
        folded=True,
    )
    text = Paragraph(
        "Each command computes one cell without the rest of the run, into a folder of its own; "
        "--retry ok computes it once more. Trials of studies and computed claims come from the "
        "commands of the whole run alone. Links in the column “Seeds” of the tables lead here."
    )
    blocks: list[Block] = [text]
    variable = folder.catalog.data_variable
    if variable and any(one.needs_download for one in folder.catalog.tasks.values()):
        sentence = f"Tasks whose data are not drawn here need {variable}, or --data-dir {DATA_DIR}."
        blocks.append(Paragraph(sentence))
    title = "Commands that reproduce each cell"
    return Section(key="commands", title=title, blocks=(*blocks, table))
