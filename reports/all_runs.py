"""What to choose for each use of attention by several runs, side by side."""

from collections.abc import Mapping
from itertools import groupby

from reports.blocks import Column, TableBlock, TableCell
from reports.choices import ABOUT_P, COLUMNS, COST_HELP, RULE, SEEDS_HELP, choice_row
from reports.folder import RunFolder
from reports.needs import DIAGNOSTICS, Need, needs
from reports.numbers import plain
from reports.training_cost import ASSUMED

PAGE = "report.md"
"""The page of a run, in the folder of its name."""
ABOUT_COSTS = (
    f"Cost of a step: {COST_HELP} It is “about the same” where its interval lies within the noise "
    "of its run, a factor that its A/A control shows, or "
    f"{plain(ASSUMED)} where there is none, and “unclear” where a part of it does."
)
ABOUT_SEEDS = f"Seeds: {SEEDS_HELP}"
DIAGNOSTIC_TITLE, USE_TITLE = "Diagnostic tests", "Uses of attention"


def choices_of_runs(runs: Mapping[str, RunFolder]) -> list[TableBlock]:
    """A row for each use and each run that can say something of it: uses, then diagnostic tests.

    Args:
        runs: Runs by the names of their folders of pages, in the order of the rows of a use.
    """
    found = [
        (need, name) for name, folder in runs.items() for need in needs(folder) if not need.is_open
    ]
    tables = []
    for diagnostic, title in ((False, USE_TITLE), (True, DIAGNOSTIC_TITLE)):
        mine = [one for one in found if (one[0].family == DIAGNOSTICS) is diagnostic]
        # sorting keeps the order of runs
        by_use = groupby(sorted(mine, key=lambda one: one[0].title), key=lambda one: one[0].title)
        rows = [row for _, group in by_use for row in _rows(list(group))]
        tables.append(
            TableBlock(
                key=title.lower().replace(" ", "-"),
                title=title,
                columns=(COLUMNS[0], Column(title="Run"), *COLUMNS[1:]),
                rows=tuple(rows),
                notes=() if diagnostic else (RULE, ABOUT_P, ABOUT_COSTS, ABOUT_SEEDS),
            )
        )
    return tables


def _rows(found: list[tuple[Need, str]]) -> list[tuple[TableCell, ...]]:
    """The rows of one use, which the first of them names."""
    rows = []
    for number, (need, run) in enumerate(found):
        use, *rest = choice_row(need)
        link = TableCell(text=run, href=f"{run}/{PAGE}")
        rows.append((use if number == 0 else TableCell(text=""), link, *rest))
    return rows
