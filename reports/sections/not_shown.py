"""Where an advantage does not appear: contenders that are not better on the task that is theirs."""

from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from bench.api.errors import InvalidSelector
from bench.api.selector import parse
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.numbers import Seen, counted, with_interval
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import validation_inputs
from reports.ranked_table.saturation import edge
from reports.ranked_table.verdicts import planned, planned_text
from reports.tested import tested_comparisons
from results.statistics import Decision, Outcome

HOW_TO_READ = (
    "Each variant has a default task, which is meant to show what it is for. These tables have "
    "every contender that is not significantly better than {baseline} on it by the planned test. "
    "Scores are those of the metric that ranks, which is about inputs longer than those of "
    "training where its name says so. An interval is that of one difference. An outcome is "
    "corrected for all hypotheses of its comparison, so a difference may be undecided though its "
    "interval has no 0. Nothing can be better than a baseline at the ceiling. A reason is not a "
    "test: the variant may also be wrong, or badly tuned. Contenders whose default task is a "
    "pipeline check, which is no evidence, have a table of their own."
)
NOT_SHOWN = "Where an advantage does not appear"
NO_REASON = "no reason is known"
BETTER_MEAN = "its mean is better here, which a pipeline check does not test"
TITLES: dict[Outcome, str] = {
    "worse": "Worse than the baseline on the default task",
    "undecided": "Undecided on the default task",
    "equivalent": "Equivalent to the baseline on the default task",
}
"""What is not better, in the order of its tables."""


class OwnTest(NamedTuple):
    """The planned test of a contender against the baseline on its default task."""

    comparison: Comparison
    variant: str
    base: str
    decision: Decision

    @property
    def reason(self) -> str:
        """Why it is not better, in its author's words; empty where nobody wrote it down."""
        return self.comparison.catalog.fact(self.variant, "does_not_show")

    @property
    def at_edge(self) -> bool:
        """Whether it is equivalent at the ceiling or at chance, which shows nothing."""
        found = self.decision.outcome == "equivalent"
        return found and bool(edge(self.comparison, self.variant, self.base))


def not_shown_section(folder: RunFolder) -> Section | None:
    """Who is not better than the baseline on the default task, and why; None where all are."""
    found, checks = not_shown(folder), on_checks(folder)
    if not found and not checks:
        return None
    read = HOW_TO_READ.format(baseline=folder.catalog.label(folder.catalog.baseline))
    blocks: list[Block] = [Paragraph(read)]
    for outcome in TITLES:
        if rows := [one for one in found if one.decision.outcome == outcome]:
            blocks.append(_table(outcome, rows))
    if checks:
        blocks.append(_table_of_checks(checks))
    return Section(key="not-shown", title=NOT_SHOWN, blocks=tuple(blocks))


def not_shown(folder: RunFolder) -> list[OwnTest]:
    """Contenders that are worse than the baseline on their default task, equal or undecided."""
    return [one for one in own_tests(folder) if one.decision.outcome in TITLES]


def own_tests(folder: RunFolder) -> Iterator[OwnTest]:
    """Every planned test of a contender against the baseline on the task that is its own."""
    for comparison in tested_comparisons(folder):
        base = comparison.baseline
        for variant in comparison.contenders:
            if base is None or variant == base or not is_own(comparison, variant):
                continue
            decision = planned(comparison, variant, base)
            if decision is not None:
                yield OwnTest(comparison, variant, base, decision)


def on_checks(folder: RunFolder) -> list[tuple[Comparison, str]]:
    """Contenders whose default task is a pipeline check, with the comparison that shows them."""
    return [
        (comparison, variant)
        for comparison in folder.comparisons
        if comparison.pipeline_check
        for variant in comparison.contenders
        if variant in comparison.means and is_own(comparison, variant)
    ]


def is_own(comparison: Comparison, variant: str) -> bool:
    """Whether a task is the one that a variant is said to show its use on."""
    known = comparison.catalog
    own, here = known.variant(variant).default_task, known.task(comparison.task).short
    try:
        return bool(own) and parse(own) == parse(here)
    except InvalidSelector:  # of a run that another version stored
        return own == here


def _table(outcome: Outcome, found: list[OwnTest]) -> TableBlock:
    return TableBlock(
        key=f"not-shown-{outcome}",
        title=f"{TITLES[outcome]}: {counted(len(found), 'contender')}",
        columns=(
            Column(title="Variant"),
            Column(title="Task"),
            *(Column(title=head, numeric=True) for head in ("Score", "To baseline")),
            Column(title="Outcome"),
            Column(title="Why it does not appear here, as far as is known"),
        ),
        rows=tuple(map(_row, found)),
    )


def _table_of_checks(found: list[tuple[Comparison, str]]) -> TableBlock:
    return TableBlock(
        key="not-shown-checks",
        title=f"The default task is a pipeline check: {counted(len(found), 'contender')}",
        columns=(
            Column(title="Variant"),
            Column(title="Task"),
            *(Column(title=head, numeric=True) for head in ("Score", "Score of the baseline")),
            Column(title="Why it does not appear here, as far as is known"),
        ),
        rows=tuple(_row_of_check(comparison, variant) for comparison, variant in found),
    )


def _row_of_check(comparison: Comparison, variant: str) -> tuple[TableCell, ...]:
    known, base = comparison.catalog, comparison.baseline
    sign = -1.0 if comparison.better == "lower" else 1.0
    why = known.fact(variant, "does_not_show") or NO_REASON
    gaps = comparison.differences(variant, base)  # none where the two share no seed
    if gaps and sign * fmean(gaps) > 0:
        why = BETTER_MEAN
    return (
        TableCell(text=known.label(variant), href=known.url(variant)),
        TableCell(text=comparison.title),
        TableCell(text=comparison.score_text(variant), sort=comparison.means[variant].estimate),
        TableCell(text=comparison.score_text(base) if base in comparison.means else NO_VALUE),
        TableCell(text=why),
    )


def _row(found: OwnTest) -> tuple[TableCell, ...]:
    comparison, variant, base, decision = found
    score = comparison.means[variant].estimate
    return (
        TableCell(text=comparison.catalog.label(variant), href=comparison.catalog.url(variant)),
        TableCell(text=comparison.title),
        TableCell(text=comparison.score_text(variant), sort=score),
        TableCell(text=_difference(found), sort=decision.difference.estimate),
        TableCell(text=planned_text(comparison, variant, base) + _never(found)),
        TableCell(text=found.reason or NO_REASON),
    )


def _difference(found: OwnTest) -> str:
    difference = found.decision.difference
    return with_interval(
        difference.estimate,
        difference.low,
        difference.high,
        signed=True,
        limits=found.comparison.ranked_by.limits,
        seen=Seen.of(found.comparison.gaps_of(difference, found.variant, found.base)),
    )


def _never(found: OwnTest) -> str:
    """A reason is no explanation of a variant that knows no more than uniform attention."""
    if not found.comparison.lost_every_seed(found.variant):
        return ""
    return f"; in no seed above uniform attention on {validation_inputs(found.comparison)}"
