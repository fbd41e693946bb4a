"""What tasks said of their data and metrics: files and hashes, signatures, what was left out."""

from reports.blocks import Column, Entry, Section, Table, Text, clean
from reports.folder import RunFolder

DATA = "data"
"""Note that says which files, of which source."""
VARIES = "differs between cells, {count} values, which stand below their ranking"


def data_section(folder: RunFolder) -> Section | None:
    """A table of what each task noted, behind a warning where cells have read different data."""
    if not folder.notes:
        return None
    rows = tuple(
        (
            Entry(text=folder.catalog.task_label(task)),
            Entry(text=clean(about)),
            Entry(text=clean(*values) if len(values) == 1 else VARIES.format(count=len(values))),
        )
        for task, notes in folder.notes.items()
        for about, values in notes.items()
    )
    table = Table(
        key="data-notes",
        title="Data and signatures of metrics",
        columns=tuple(Column(title=head) for head in ("Task", "About", "Note")),
        rows=rows,
        folded=True,
    )
    warnings = (Text(told, "warning") for told in mixed_data(folder).values())
    return Section(key="data", title="Data", blocks=(*warnings, table))


def mixed_data(folder: RunFolder) -> dict[str, str]:
    """A sentence for each task whose cells did not all read the same files.

    Cells are named by what was asked for, and a copy from the hub in the place of the mirror is
    the same question about other data.
    """
    return {
        task: f"{folder.catalog.task_label(task)}: cells have read different data, so they must "
        f"not be compared or averaged ({'; '.join(map(clean, notes[DATA]))}). Run them again into "
        "a new folder, from one source."
        for task, notes in folder.notes.items()
        if len(notes.get(DATA, ())) > 1
    }
