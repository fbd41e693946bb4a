"""What the names in a report stand for."""

from reports.blocks import NO_VALUE, Column, Section, TableBlock, TableCell, clean, safe_url
from reports.folder import RunFolder


def names_section(folder: RunFolder) -> Section:
    """Papers and deviations of the variants, sources and terms of the tasks."""
    return Section(
        key="names", title="Variants and tasks", blocks=(_variants(folder), _tasks(folder))
    )


def _variants(folder: RunFolder) -> TableBlock:
    known = folder.catalog
    used = sorted({outcome.cell.variant for outcome in folder.outcomes} | set(known.variants))
    told = any(known.fact(name, "does_not_show") for name in used)
    rows = tuple(
        (
            TableCell(text=known.label(name)),
            TableCell(text=clean(name), code=True),
            TableCell(text=known.fact(name, "family") or NO_VALUE),
            TableCell(text=known.fact(name, "paper") or NO_VALUE, href=known.url(name)),
            TableCell(text=known.fact(name, "where") or NO_VALUE),
            TableCell(text=known.fact(name, "deviations") or NO_VALUE),
            *([TableCell(text=known.fact(name, "does_not_show") or NO_VALUE)] if told else []),
        )
        for name in used
    )
    heads = ["Variant", "Selector", "Family", "Paper", "Where", "Deviations from the paper"]
    heads += ["Does not show here"] if told else []
    return TableBlock(
        key="variants-table",
        title="Variants",
        columns=tuple(Column(title=head) for head in heads),
        rows=rows,
        folded=True,
    )


def _tasks(folder: RunFolder) -> TableBlock:
    known = folder.catalog
    used = sorted(
        {o.cell.task for o in folder.outcomes if o.cell.kind != "speed"} | set(known.tasks)
    )
    rows = tuple(
        (
            TableCell(text=known.task_label(name)),
            TableCell(text=clean(name), code=True),
            TableCell(text=known.metric(known.primary(name)).axis or NO_VALUE),
            TableCell(
                text=clean(known.task(name).paper or NO_VALUE),
                href=safe_url(known.task(name).url),
            ),
            TableCell(text=known.license(name)),
        )
        for name in used
    )
    heads = ("Task", "Selector", "Ranked by", "Paper", "Terms of the data")
    return TableBlock(
        key="tasks-table",
        title="Tasks",
        columns=tuple(Column(title=head) for head in heads),
        rows=rows,
        folded=True,
    )
