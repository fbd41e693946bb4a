"""What to choose for every use of attention, of which the first screen shows some."""

from reports.blocks import Section
from reports.choices import MOST_ROWS, every_need
from reports.folder import RunFolder


def needs_section(folder: RunFolder) -> Section | None:
    """The choice table without its limit; None where the first screen shows all of it."""
    table = every_need(folder)
    if table is None or len(table.rows) <= MOST_ROWS:
        return None
    return Section(
        key="needs", title="What to choose for every use", blocks=(table,), group="summary"
    )
