"""What tasks said of their data and metrics: files and hashes, signatures, what was left out."""

from reports.blocks import Column, Paragraph, Section, TableBlock, TableCell, clean
from reports.folder import RunFolder
from reports.ranked_table.comparison import Comparison
from reports.sections.decisions import in_this_run

DATA = "data"
"""Note that says which files, of which source."""
CAVEAT = "caveat"
"""Note that stands beneath every table of its task, too."""
FEWER = "fewer rows"
"""Note that says which parts have fewer rows than the options of the task ask for."""
NO_EVIDENCE = "A pipeline check, and no evidence for or against any variant."
VARIES = "differs between cells: {count} values, listed below the ranking of the task"


def data_section(folder: RunFolder) -> Section | None:
    """A table of what each task noted, behind a warning where cells have read different data."""
    if not folder.notes:
        return None
    rows = tuple(
        (
            TableCell(text=folder.catalog.task_label(task)),
            TableCell(text=clean(about)),
            TableCell(
                text=clean(*values) if len(values) == 1 else VARIES.format(count=len(values))
            ),
        )
        for task, notes in folder.notes.items()
        for about, values in notes.items()
        if len(values) == 1 or about != CAVEAT
    )
    table = TableBlock(
        key="data-notes",
        title="Data and signatures of metrics",
        columns=tuple(Column(title=head) for head in ("Task", "About", "Note")),
        rows=rows,
        folded=True,
    )
    told = (*mixed_data(folder).values(), *short_data(folder))
    warnings = (Paragraph(sentence, "warning") for sentence in told)
    return Section(key="data", title="Data", blocks=(*warnings, table))


def caveats(folder: RunFolder, comparison: Comparison) -> list[Paragraph]:
    """What cells of a comparison ask to be remembered when their scores are read."""
    here = comparison.cells.every
    told = [
        clean(sentence)
        for sentence, cells in folder.notes.get(comparison.task, {}).get(CAVEAT, {}).items()
        if any(one.record.id in here for one in cells)
    ]
    why = comparison.pipeline_check
    mark = [f"{NO_EVIDENCE} {why}{in_this_run([comparison])}"] if why else []
    return [Paragraph(text) for text in mark + told]


def mixed_data(folder: RunFolder) -> dict[str, str]:
    """A sentence for each task whose cells did not all read the same files.

    Cells are named by what was asked for, and a copy from the hub in the place of the data
    directory is the same question about other data.
    """
    return {
        task: f"{folder.catalog.task_label(task)}: cells have read different data "
        f"({'; '.join(map(clean, notes[DATA]))}). They must not be compared or averaged. Run them "
        "again into a new folder, from one source."
        for task, notes in folder.notes.items()
        if len(notes.get(DATA, ())) > 1
    }


def short_data(folder: RunFolder) -> list[str]:
    """A sentence for each task that read fewer rows than its options ask for."""
    return [
        f"{folder.catalog.task_label(task)}: the data have fewer rows than were asked for "
        f"({clean(told)}). A file may be cut short. If not, ask for fewer."
        for task, notes in folder.notes.items()
        for told in notes.get(FEWER, ())
    ]
