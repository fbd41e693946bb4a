"""What was to be decided before the run, and how much of it was, a line a comparison."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import compress

from reports.blocks import (
    NO_VALUE,
    Block,
    Bullets,
    Column,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
)
from reports.folder import RunFolder
from reports.missing_values import dash
from reports.numbers import counted, plain
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.verdicts import AT_EDGE, OUTCOMES, decision_counts, planned
from reports.sections.mixed_environments import places_of
from reports.sections.not_shown import NOT_SHOWN, behind
from reports.tested import tested_comparisons
from results.statistics import MOST_SEEDS, Decision

HOW_TO_READ = (
    "A primary hypothesis is fixed before the run: a contender against the baseline, a contender "
    "against uniform attention, or the baseline against uniform attention. It is decided if the "
    "difference is significant, or shown to be smaller than the margin. At most 5% of comparisons "
    "without any true difference have a significant one, and at most 5% of those whose differences "
    "all reach the margin have one that is called equivalent. This holds in simulations of usual "
    "scores; strongly skewed ones and runs that fail rarely have more false claims."
)
LOOKS = (
    "Seeds were added where a hypothesis was undecided, so variants differ in their numbers of "
    "seeds. The run looked at its scores at {counts} seeds and so on. Each look spends a quarter "
    "of the error rate that earlier looks left, and p values and intervals of differences are of "
    "all looks together, so the error rate of 5% holds for all looks together."
)
CHECKS = (
    "Pipeline checks are left out here and in every summary, for they are no evidence. The reason "
    "was written down before this run, for the size that it names:"
)
EDGE_HELP = (
    "Equivalent because both scores are within 1% of the best possible one, or of chance: the task "
    "is too easy or too hard to tell the two apart."
)
SEEDS_HELP = (
    "Seeds that would probably decide half of what is undecided, if means and spreads stay as they "
    "are. An order of magnitude."
)
MARGIN = "Margin"
"""Title of the column that is left out where all comparisons have the same."""
SAME_MARGIN = "Scores that differ by less than {margin} are equivalent."
NO_MARGIN = "No margin was fixed for these metrics, so nothing is called equivalent."
AS_UNIFORM = " (as uniform attention is)"
"""Behind what is equivalent to the baseline where uniform attention is, too."""
NO_SPREAD = "no spread was seen in these scores, so it is not known."
DETECTABLE_HELP = (
    "Smallest true difference that half of the tests would find in 80 % of runs, with these seeds."
)


def decisions_section(folder: RunFolder) -> Section | None:
    """How many primary hypotheses were decided; None where nothing was tested."""
    tested = tested_comparisons(folder)
    if not tested:
        return None
    references = _references(tested)
    margins = {one.ranked_by.margin for one in tested}
    columns = (
        Column(title="Comparison"),
        Column(title="Metric"),
        Column(title=MARGIN, numeric=True, help="Scores that differ by less are equivalent."),
        Column(title="Seeds", numeric=True),
        Column(title="Tested", numeric=True, help="Primary hypotheses."),
        *(_column(folder.catalog.label(name)) for name in references),
        Column(title="Equivalent", unit=AT_EDGE, numeric=True, help=EDGE_HELP),
        Column(title="Detectable difference", numeric=True, help=DETECTABLE_HELP),
        Column(title="Seeds to decide", numeric=True, help=SEEDS_HELP),
    )
    rows = [_row(folder, one, references) for one in sorted(tested, key=_share_undecided)]
    shown = [column.title != MARGIN or len(margins) > 1 for column in columns]
    table = TableBlock(
        key="decisions-table",
        title="Primary hypotheses of each comparison",
        columns=tuple(compress(columns, shown)),
        rows=tuple(tuple(compress(row, shown)) for row in rows),
        notes=_about_columns(margins),
    )
    return Section(
        key="decisions",
        title="What was decided",
        blocks=(
            Paragraph(f"{decided_share(tested)} {outcomes_text(tested)}"),
            Paragraph(HOW_TO_READ),
            *_about_looks(folder),
            table,
            *_not_shown(folder),
            *_checks(folder),
        ),
        group="summary",
    )


def scope(folder: RunFolder) -> str:
    """How many tasks and comparisons a run has, and how many of them are no evidence.

    A task counts once, whatever its options; `with options` counts each choice of them.
    """
    selectors = {outcome.cell.task for outcome in folder.of_kind("quality")}
    names = {text.partition("[")[0] for text in selectors}
    more = f" ({len(selectors)} with options)" if len(selectors) > len(names) else ""
    tasks = f"{counted(len(names), 'task')}{more}"
    if not folder.comparisons:
        return tasks
    known = folder.catalog
    checks = sum(bool(known.pipeline_check(one.task)) for one in folder.comparisons)
    are = "is a pipeline check" if checks == 1 else "are pipeline checks"
    of_which = f", of which {checks} {are}" if checks else ""
    return f"{tasks}, {counted(len(folder.comparisons), 'comparison')}{of_which}"


def left_out(folder: RunFolder) -> list[str]:
    """Pipeline checks, each with the reason why it is no evidence, and how it was in this run."""
    known = folder.catalog
    found: dict[str, list[Comparison]] = {}
    for one in folder.comparisons:
        if known.pipeline_check(one.task):
            found.setdefault(one.task, []).append(one)
    return [
        f"{known.task_label(task)}: {known.pipeline_check(task)}{_in_this_run(comparisons)}"
        for task, comparisons in found.items()
    ]


def _in_this_run(comparisons: Sequence[Comparison]) -> str:
    """How many variants were better than the best non-neural baseline after all."""
    every = {name for one in comparisons for name in one.contenders if one.without}
    better = {name for one in comparisons for name in one.beats_the_rest}
    if not better:
        return ""
    return (
        f" In this run {len(better)} of {counted(len(every), 'variant')} are better than the best "
        "non-neural baseline in every seed. The mark was kept."
    )


def _about_columns(margins: Collection[float | None]) -> tuple[str, ...]:
    """What the columns mean, and the margin where all comparisons have the same."""
    told = [
        "Comparisons of which most is decided come first. The detectable difference is the "
        "smallest true one that half of the tests would find in 80% of runs with these seeds. "
        "Seeds to decide are those that would probably decide half of what is undecided."
    ]
    if len(margins) == 1:
        (margin,) = margins
        told.insert(0, NO_MARGIN if margin is None else SAME_MARGIN.format(margin=plain(margin)))
    return tuple(told)


def _share_undecided(comparison: Comparison) -> float:
    """Share of the hypotheses of a comparison that were not decided, or show nothing."""
    counts = decision_counts(comparison)
    return (counts["undecided"] + counts[AT_EDGE]) / max(sum(counts.values()), 1)


def _not_shown(folder: RunFolder) -> list[Block]:
    """How many variants do not show what their papers report, and where the page says why."""
    found = [*behind(folder)]
    if not found:
        return []
    worse = sum(one.worse for one in found)
    base = folder.catalog.label(folder.catalog.baseline)
    reasons = sum(bool(one.reason) for one in found)
    told = (
        f"On the task that is said to show what they are for, {counted(worse, 'variant')} "
        f"{'is' if worse == 1 else 'are'} significantly worse than {base}, and "
        f"{len(found) - worse} below it and undecided. “{NOT_SHOWN}” among the details has "
        f"them all; for {reasons} it says why the advantage that the paper reports may not appear "
        "at this size."
    )
    return [Paragraph(told)]


def _checks(folder: RunFolder) -> list[Block]:
    found = left_out(folder)
    return [Paragraph(CHECKS), Bullets(tuple(found))] if found else []


def decided_share(tested: Sequence[Comparison]) -> str:
    """How much of what was tested is decided; what is equivalent at an edge is not."""
    totals = _totals(tested)
    every = sum(found.total() for found in totals.values())
    open_ = sum(found[AT_EDGE] + found["undecided"] for found in totals.values())
    decided, where = every - open_, counted(len(tested), "comparison")
    share = f"{decided} of {every} primary hypotheses ({decided / every:.0%})"
    return f"The run decides {share} in {where}."


def outcomes_text(tested: Sequence[Comparison]) -> str:
    """What was decided against the baseline, and against uniform attention.

    The two references are not added up. To be better than uniform attention shows that something
    was learned; only the other count speaks for a variant. What is equivalent at the ceiling or at
    chance is counted apart.
    """
    totals, known = _totals(tested), tested[0].catalog
    edges = sum(found[AT_EDGE] for found in totals.values())
    parts = []
    if edges:
        are = "hypothesis is" if edges == 1 else "hypotheses are"
        parts.append(f"Another {edges} {are} equivalent {AT_EDGE}, which shows nothing.")
    for name, found in totals.items():
        uniform = known.flag(name, "uniform_baseline")
        kinds = [*OUTCOMES, AT_EDGE] if found[AT_EDGE] else OUTCOMES
        told_ = ", ".join(f"{found[outcome]} {outcome}" for outcome in kinds)
        parts.append(f"Against {'uniform attention' if uniform else known.label(name)}: {told_}.")
    return " ".join(parts)


def _totals(tested: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Outcomes of all comparisons, by reference."""
    totals = {name: Counter[str]() for name in _references(tested)}
    for comparison in tested:
        for name, found in totals.items():
            found.update(decision_counts(comparison, name))
    return totals


def _references(tested: Sequence[Comparison]) -> list[str]:
    """What contenders were tested against: the baseline, then uniform attention."""
    found = dict.fromkeys(asked.reference for one in tested for asked in one.primary)
    known = tested[0].catalog
    return sorted(found, key=lambda name: (known.flag(name, "uniform_baseline"), name))


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
    detectable = sorted(one.detectable for one in found)[len(found) // 2]
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


def _about_looks(folder: RunFolder) -> list[Paragraph]:
    """How seeds were added, where they were."""
    looks = folder.catalog.looks
    if looks is None:
        return []
    counts = ", ".join(str(len(looks.seeds(number))) for number in (1, 2, 3))
    return [Paragraph(LOOKS.format(counts=counts))]


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
    if value >= limits[1] - limits[0]:
        return TableCell(text="more than the whole range", sort=value)
    return _number(value)


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
