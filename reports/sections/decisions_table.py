"""The table of what was decided: a line a comparison, a column a reference."""

import math
from collections.abc import Collection, Sequence
from itertools import compress
from statistics import median

from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.folder import RunFolder
from reports.missing_values import dash
from reports.numbers import plain
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.verdicts import (
    AT_EDGE,
    OUTCOMES,
    decision_counts,
    detectable_text,
    planned,
)
from reports.sections.mixed_environments import places_of
from results.statistics import MOST_SEEDS, Decision

EDGE_HELP = (
    "Equivalent because both scores are within 1% of the best possible one, or of chance: the task "
    "is too easy or too hard to tell the two apart."
)
SEEDS_HELP = (
    "Seeds that would probably decide half of what is undecided, if means and spreads stay as they "
    "are. An order of magnitude."
)
PRECEDENCE = (
    "A significant difference counts as better or worse, even if it is smaller than the margin. Of "
    "the others, one is called equivalent if two one-sided tests show that it"
)
MARGIN_HELP = f"{PRECEDENCE} is smaller."
MARGIN = "Margin"
"""Title of the column that is left out where all comparisons have the same."""
SAME_MARGIN = PRECEDENCE + " lies within {margin} of zero."
NO_MARGIN = "No margin was fixed for these metrics, so nothing is called equivalent."
AS_UNIFORM = " (as uniform attention is)"
"""Behind what is equivalent to the baseline where uniform attention is, too."""
NO_SPREAD = "no spread was seen in these scores, so it is not known."
DETECTABLE_HELP = (
    "The smallest true difference that a test finds in 80% of runs with these seeds; the median "
    "over the tests of the row."
)


def decisions_table(folder: RunFolder, tested: Sequence[Comparison]) -> TableBlock:
    """Primary hypotheses of each comparison, those of which most is decided first."""
    references = references_of(tested)
    margins = {one.ranked_by.margin for one in tested}
    columns = (
        Column(title="Comparison"),
        Column(title="Metric"),
        Column(title=MARGIN, numeric=True, help=MARGIN_HELP),
        Column(title="Seeds", numeric=True),
        Column(
            title="Tested", numeric=True, help="Primary hypotheses.", counts="primary hypotheses"
        ),
        *(_column(folder.catalog.label(name)) for name in references),
        Column(title="Equivalent", unit=AT_EDGE, numeric=True, help=EDGE_HELP),
        Column(title="Detectable difference", numeric=True, help=DETECTABLE_HELP),
        Column(title="Seeds to decide", numeric=True, help=SEEDS_HELP),
    )
    rows = [_row(folder, one, references) for one in sorted(tested, key=_share_undecided)]
    shown = [column.title != MARGIN or len(margins) > 1 for column in columns]
    return TableBlock(
        key="decisions-table",
        title="Primary hypotheses of each comparison",
        columns=tuple(compress(columns, shown)),
        rows=tuple(tuple(compress(row, shown)) for row in rows),
        notes=_about_columns(margins),
    )


def references_of(tested: Sequence[Comparison]) -> list[str]:
    """What contenders were tested against: the baseline, then uniform attention."""
    found = dict.fromkeys(asked.reference for one in tested for asked in one.primary)
    known = tested[0].catalog
    return sorted(found, key=lambda name: (known.variant(name).uniform_baseline, name))


def _about_columns(margins: Collection[float | None]) -> tuple[str, ...]:
    """What the columns mean, and what a margin decides."""
    told = [
        "Comparisons of which most is decided come first. The detectable difference is the "
        "smallest true one that a test finds in 80% of runs with these seeds, as the median over "
        "the tests of the row. Seeds to decide are those that would probably decide half of what "
        "is undecided."
    ]
    if len(margins) == 1:
        (margin,) = margins
        told.insert(0, NO_MARGIN if margin is None else SAME_MARGIN.format(margin=plain(margin)))
    else:
        told.insert(0, MARGIN_HELP)
    return tuple(told)


def _share_undecided(comparison: Comparison) -> float:
    """Share of the hypotheses of a comparison that were not decided, or show nothing."""
    counts = decision_counts(comparison)
    return (counts["undecided"] + counts[AT_EDGE]) / max(sum(counts.values()), 1)


def _column(reference: str) -> Column:
    """What came out of the tests against a reference."""
    return Column(title=f"Against {reference}", help="Sorted by how many contenders are better.")


def _outcomes(comparison: Comparison, reference: str) -> TableCell:
    """How many contenders are better, worse, equivalent and undecided; zeros are left out.

    What is equivalent at the ceiling or at chance has a column of its own.
    """
    counts = decision_counts(comparison, reference)
    told = {name: f"{counts[name]} {name}" for name in OUTCOMES if counts[name]}
    base, uniform = comparison.baseline, comparison.uniform_baseline
    if base and reference == base and "equivalent" in told:
        references = planned(comparison, base, uniform)
        if references is not None and references.outcome == "equivalent":
            told["equivalent"] += AS_UNIFORM
    return TableCell(text=", ".join(told.values()) or NO_VALUE, sort=counts["better"])


def _row(
    folder: RunFolder, comparison: Comparison, references: Sequence[str]
) -> tuple[TableCell, ...]:
    metric = comparison.ranked_by
    edges = decision_counts(comparison)[AT_EDGE]
    found = [*comparison.primary.values()]
    detectable = median(one.detectable for one in found)
    return (
        TableCell(text=f"{comparison.title}{places_of(folder, comparison)}"),
        TableCell(text=metric.arrow),
        _number(metric.margin if metric.margin is not None else math.nan),
        TableCell(text=_seeds_text(comparison), sort=comparison.most_seeds),
        TableCell(text=str(len(found)), sort=len(found)),
        *(_outcomes(comparison, name) for name in references),
        TableCell(text=str(edges), sort=edges),
        _detectable(detectable, metric.limits, comparison.title),
        _seeds([one for one in found if not one.decided], comparison.title),
    )


def _seeds_text(comparison: Comparison) -> str:
    """Seeds of the contenders: one number, or the least and the most where seeds were added."""
    counts = [len(comparison.scores[name]) for name in comparison.contenders]
    if comparison.catalog.looks is None or not counts or min(counts) == max(counts):
        return str(comparison.most_seeds)
    return f"{min(counts)}–{max(counts)}"


def _number(value: float) -> TableCell:
    if not math.isfinite(value):
        return TableCell(text=NO_VALUE, sort="")
    return TableCell(text=plain(value), sort=value)


def _detectable(value: float, limits: tuple[float, float], title: str) -> TableCell:
    """A difference as large as the range of the metric cannot be, whatever it is."""
    if math.isinf(value):
        return dash(f"{title}: detectable difference, {NO_SPREAD}")
    text = detectable_text(value, limits)
    return TableCell(text=text or NO_VALUE, sort=value if text else "")


def _seeds(undecided: Sequence[Decision], title: str) -> TableCell:
    """The seeds after which half of what is open would be decided.

    What has no spread comes last: of it, no number of seeds is known.
    """
    if not undecided:
        return TableCell(text=NO_VALUE, sort="")
    ordered = sorted(undecided, key=lambda one: (not one.difference.error, _needed(one)))
    middle = ordered[(len(ordered) - 1) // 2]
    if not middle.difference.error:
        return dash(f"{title}: seeds to decide, {NO_SPREAD}")
    seeds = _needed(middle)
    text = f"> {MOST_SEEDS}" if math.isinf(seeds) else f"{seeds:.0f}"
    return TableCell(text=text, sort=seeds)


def _needed(decision: Decision) -> float:
    """Seeds that would decide; infinite above `MOST_SEEDS`."""
    return math.inf if decision.seeds_to_decide is None else float(decision.seeds_to_decide)
