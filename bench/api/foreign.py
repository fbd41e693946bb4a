"""Whose code a cell runs: that of this project, or of a plug-in."""

from bench.api.axes import AXES
from bench.api.cell import Cell
from bench.api.ours import is_ours
from bench.api.registry import registrations
from bench.api.selector import parse, walk


def runs_foreign_code(cell: Cell) -> bool:
    """Whether a part of a cell was registered by a plug-in."""
    return names_foreign_code(cell.task, cell.backbone, cell.variant, cell.protocol)


def names_foreign_code(*selectors: str) -> bool:
    """Whether one of the selectors names what a plug-in registered, at any depth."""
    names = {part.name for text in selectors for part in walk(parse(text))}
    return not names.isdisjoint(_foreign_names())


def _foreign_names() -> set[str]:
    return {
        name
        for axis in AXES
        for name, registered in registrations(axis).items()
        if not is_ours(registered.module)
    }
