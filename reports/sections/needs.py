"""What to choose for the uses of attention that the first screen has no room for."""

from reports.blocks import Section
from reports.choices import other_needs
from reports.folder import RunFolder


def needs_section(folder: RunFolder) -> Section | None:
    """The rows that the table of choices has no room for; None where it shows all of them."""
    table = other_needs(folder)
    if table is None:
        return None
    return Section(
        key="needs", title="What to choose for other uses", blocks=(table,), group="summary"
    )
