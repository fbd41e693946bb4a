"""Where an advantage does not appear: contenders behind the baseline on the task that is theirs."""

from collections.abc import Iterator
from typing import NamedTuple

from bench.api.errors import InvalidSelector
from bench.api.selector import parse
from reports.blocks import Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.numbers import counted
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import is_about_longer_inputs
from reports.ranked_table.verdicts import planned
from reports.tested import tested_comparisons
from results.statistics import Decision

MOST_ROWS = 30
"""Of the first table; a second one, which is folded, has the rest."""
HOW_TO_READ = (
    "Each variant has a task that is said to show what it is for. On that task these contenders "
    "are significantly worse than {baseline} by the planned test, or below it and undecided. "
    "Scores are those of the metric that ranks, which is about inputs longer than those of "
    "training where its name says so. Where "
    "somebody has written down why the advantage that the paper reports cannot appear at this "
    "size, the last column has the reason. A reason is not a test: the variant may also be wrong, "
    "or badly tuned."
)
NOT_SHOWN = "Where an advantage does not appear"
NO_REASON = "no reason is known"


class Behind(NamedTuple):
    """A contender that does not show its advantage in a comparison."""

    comparison: Comparison
    variant: str
    decision: Decision

    @property
    def reason(self) -> str:
        """Why, in its author's words; empty where nobody wrote it down."""
        return self.comparison.catalog.fact(self.variant, "does_not_show")

    @property
    def worse(self) -> bool:
        """Whether it is significantly worse."""
        return self.decision.outcome == "worse"


def not_shown_section(folder: RunFolder) -> Section | None:
    """Who is worse than the baseline on the own task, and why; None where nobody is."""
    found = sorted(behind(folder), key=lambda one: (not one.worse, not one.reason))
    if not found:
        return None
    rows = [one for one in found if one.worse or one.reason]
    blocks: list[Block] = [
        Paragraph(HOW_TO_READ.format(baseline=folder.catalog.label(folder.catalog.baseline)))
    ]
    if rows:
        blocks.append(_table(rows[:MOST_ROWS]))
    if rows[MOST_ROWS:]:
        blocks.append(_table(rows[MOST_ROWS:], more=True))
    rest = [one for one in found if one not in rows]
    if rest:
        many = counted(len(rest), "contender")
        blocks.append(Paragraph(f"Below and undecided, {NO_REASON}: {many}, {_named(rest)}."))
    return Section(
        key="not-shown",
        title=NOT_SHOWN,
        blocks=tuple(blocks),
    )


def behind(folder: RunFolder) -> Iterator[Behind]:
    """Contenders that are significantly worse on their own task, or undecided with a worse mean."""
    for comparison in tested_comparisons(folder):
        sign = -1.0 if comparison.better == "lower" else 1.0
        for variant in comparison.contenders:
            decision = planned(comparison, variant, comparison.baseline)
            if variant == comparison.baseline or decision is None:
                continue
            below = sign * decision.difference.estimate < 0
            open_ = below and decision.outcome == "undecided"
            if (open_ or decision.outcome == "worse") and is_own(comparison, variant):
                yield Behind(comparison, variant, decision)


def is_own(comparison: Comparison, variant: str) -> bool:
    """Whether a task is the one that a variant is said to show its use on."""
    known = comparison.catalog
    own, here = known.variant(variant).default_task, known.task(comparison.task).short
    try:
        return bool(own) and parse(own) == parse(here)
    except InvalidSelector:  # of a run that another version stored
        return own == here


def _named(found: list[Behind]) -> str:
    """Variants, each with its task where the others have another one."""
    by_task: dict[str, list[str]] = {}
    for one in found:
        label = one.comparison.catalog.label(one.variant)
        by_task.setdefault(one.comparison.title, []).append(label)
    return "; ".join(f"{join(names)} on {task}" for task, names in by_task.items())


def _table(found: list[Behind], *, more: bool = False) -> TableBlock:
    return TableBlock(
        key="not-shown-more" if more else "not-shown-table",
        title=f"Behind the baseline on the task that is theirs{', continued' if more else ''}",
        columns=(
            Column(title="Variant"),
            Column(title="Task"),
            *(Column(title=head, numeric=True) for head in ("Score", "Baseline")),
            Column(title="Outcome"),
            Column(title="Why the advantage may not appear here"),
        ),
        rows=tuple(_row(one) for one in found),
        folded=more,
    )


def _row(found: Behind) -> tuple[TableCell, ...]:
    comparison, variant, decision = found
    base = comparison.baseline or ""
    means = comparison.means
    return (
        TableCell(text=comparison.catalog.label(variant), href=comparison.catalog.url(variant)),
        TableCell(text=comparison.title),
        TableCell(text=comparison.score_text(variant), sort=means[variant].estimate),
        TableCell(text=comparison.score_text(base), sort=means[base].estimate),
        TableCell(text=decision.outcome + _never(found)),
        TableCell(text=found.reason or NO_REASON),
    )


def _never(found: Behind) -> str:
    """A reason is no explanation of a variant that knows no more than uniform attention."""
    if not found.comparison.lost_every_seed(found.variant):
        return ""
    longer = is_about_longer_inputs(found.comparison)
    inputs = "validation inputs longer than those of training" if longer else "validation"
    return f"; in no seed above uniform attention on {inputs}"
