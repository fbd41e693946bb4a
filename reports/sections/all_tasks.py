"""What all tasks say together of each variant, against the baseline and uniform attention."""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.needs import beats, decides
from reports.normalized_scores import as_many_of_each, on_a_scale, runs_of_a_use
from reports.numbers import counted, plain, probability, with_interval
from reports.quality_cost import improvement, of_each_use, shared_with, use_of
from reports.ranked_table.comparison import Comparison
from results.statistics import Interval, interquartile_mean, sign_test

LEAST_TASKS = 3
"""Fewer tasks say nothing together."""
LEAST_CONTENDERS = 3
"""With fewer in enough tasks there is nothing to summarize."""
LEAST_DIFFERING = 6
"""Uses of which means differ; a sign test of fewer can hardly be significant."""
TOO_FEW = (
    "There is no summary over all tasks: {told} in at least {least} tasks beside {baseline}. Read "
    "each task by itself."
)
MOST_ROWS = 40
HOW_TO_READ = (
    "Tasks of one use of attention are dependent, so all columns but the counts of comparisons "
    "count each use once; all diagnostic tests together are one use here. A use is won if the "
    "variant is significantly better in more of its comparisons than it is significantly worse, "
    "lost if in fewer, and tied if in as many, such as none. {sign_test}The mean rank is the place "
    "by the mean score and of how many variants, both averaged over uses. P(better) is "
    "the probability that a run is better than a run of the baseline, averaged over uses, with a "
    "95% bootstrap interval, or without one where there are fewer than three uses. The "
    "interquartile mean is that of the middle half of all runs, where 0 is uniform attention and "
    "1 the best possible score. A run of a use is the mean over its tasks, seed by seed; tasks "
    "without a best possible score are left out, and the last column says how many comparisons "
    "have one, and of how many uses. Bootstrap intervals of few seeds are too narrow. "
    "Variants took part in different tasks, so the order of lines is not a ranking."
)


SIGN_TEST = "Sign test"
ABOUT_SIGN_TEST = (
    "The sign test asks whether means are better in more uses than chance would give; it is left "
    "out where means differ in fewer than six uses. Its p is not corrected for the number of "
    "lines. "
)
COMPARISONS_HELP = "Tasks and networks in which the variant and the baseline were compared."
SCALED_HELP = "Comparisons with a best possible score, and of how many uses they are."
IQM_HELP = "Of the comparisons whose metric has a best possible score."


def all_tasks_section(folder: RunFolder) -> Section | None:
    """One line for each variant that shares enough tasks with the baseline; None without any."""
    found = [one for one in folder.comparisons if decides(one)]
    base = folder.catalog.baseline
    if len({one.task for one in found}) < LEAST_TASKS:
        return None
    shared = {
        name: many
        for name, many in shared_with(found, base).items()
        if len({one.task for one in many}) >= LEAST_TASKS
    }
    contenders = [name for name in shared if not folder.catalog.variant(name).is_control]
    if len(contenders) < LEAST_CONTENDERS:
        return _section(Paragraph(_too_few(folder, len(contenders))))
    levels = {name: improvement(many, name, base) for name, many in shared.items()}
    order = sorted(shared, key=lambda name: (-levels[name].estimate, name))[:MOST_ROWS]
    label = folder.catalog.label(base)
    table = TableBlock(
        key="all-tasks-table",
        title=f"Variants over at least {LEAST_TASKS} tasks",
        columns=_columns(label),
        rows=tuple(_row(folder, name, shared[name], levels[name]) for name in order),
    )
    table = _without_empty_columns(table)
    tested = any(column.title == SIGN_TEST for column in table.columns)
    told = HOW_TO_READ.format(sign_test=ABOUT_SIGN_TEST if tested else "")
    return _section(Paragraph(told), table)


def _section(*blocks: Block) -> Section:
    return Section(key="all-tasks", title="Summary over all tasks", blocks=blocks, group="summary")


def _too_few(folder: RunFolder, contenders: int) -> str:
    """Why there is no table."""
    took = f"only {counted(contenders, 'contender')} took part" if contenders else "none took part"
    label = folder.catalog.label(folder.catalog.baseline)
    return TOO_FEW.format(told=took, least=LEAST_TASKS, baseline=label)


def _without_empty_columns(table: TableBlock) -> TableBlock:
    """A table without the columns in which no line has anything."""
    kept = [
        at
        for at in range(len(table.columns))
        if any(row[at].text != NO_VALUE for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
    )


def _columns(baseline: str) -> tuple[Column, ...]:
    test = (
        "Uses in which more tasks have the better mean than the worse one, of those that differ, "
        "and the p of a sign test."
    )
    place = (
        "Place by the mean score, where equal means share their places, and of how many variants; "
        "mean over uses."
    )
    return (
        Column(title="Variant"),
        Column(title="Comparisons", numeric=True, help=COMPARISONS_HELP),
        Column(
            title="Mean rank",
            numeric=True,
            better="lower",
            help=place,
        ),
        Column(title=f"Against {baseline}", unit="uses won\N{EN DASH}tied\N{EN DASH}lost"),
        Column(title=SIGN_TEST, unit="better of differing, p", help=test),
        Column(title="Against uniform", unit="uses won\N{EN DASH}tied\N{EN DASH}lost"),
        Column(title=SIGN_TEST, unit="better of differing, p", help=test),
        Column(title="P(better)", unit=f"than {baseline}", numeric=True, better="higher"),
        Column(title="Interquartile mean", numeric=True, better="higher", help=IQM_HELP),
        Column(title="Interquartile mean", unit=f"of {baseline} there", numeric=True),
        Column(title="Comparisons", unit="of interquartile means", numeric=True, help=SCALED_HELP),
    )


def _row(
    folder: RunFolder, variant: str, found: Sequence[Comparison], level: Interval
) -> tuple[TableCell, ...]:
    rank = _over_uses(found, lambda one: _place(one, variant))
    size = _over_uses(found, lambda one: float(len(one.compared)))
    catalog = folder.catalog
    marks = ("control",) if catalog.variant(variant).is_control else ()
    return (
        TableCell(text=catalog.label(variant), marks=marks),
        TableCell(text=str(len(found)), sort=len(found)),
        TableCell(text=f"{rank:.1f} of {size:.1f}", sort=rank),
        *_against(found, variant, [one.baseline for one in found]),
        *_against(found, variant, [one.uniform_baseline for one in found]),
        TableCell(text=_share(level), sort=level.estimate),
        *_middle(found, variant, catalog.baseline),
    )


def _share(level: Interval) -> str:
    """A probability with its interval, or with its few uses where there is none."""
    if math.isfinite(level.low):
        return with_interval(level.estimate, level.low, level.high)
    return f"{plain(level.estimate)} ({counted(level.count, 'use')})"


def _place(comparison: Comparison, variant: str) -> float:
    """Place by the mean score, from 1; equal means share the mean of their places."""
    means = [comparison.means[name].estimate for name in comparison.compared]
    mine = comparison.means[variant].estimate
    return 1.0 + fmean(at for at, mean in enumerate(means) if mean == mine)


def _over_uses(found: Sequence[Comparison], value: Callable[[Comparison], float]) -> float:
    """Mean over uses of the mean over the comparisons of each."""
    return fmean(fmean(map(value, group)) for group in of_each_use(found))


def _against(
    found: Sequence[Comparison], variant: str, others: Sequence[str | None]
) -> tuple[TableCell, TableCell]:
    """Uses with more significant wins than losses, as many, and fewer; the sign test on means."""
    pairs = [
        (one, other)
        for one, other in zip(found, others, strict=True)
        if other and other != variant and other in one.compared
    ]
    if not pairs:
        return TableCell(text=NO_VALUE, sort=""), TableCell(text=NO_VALUE, sort="")
    wins, ties, losses = _signs(pairs, variant, beats)
    ahead, _, behind = _signs(pairs, variant, _ahead)
    counts = TableCell(text="\N{EN DASH}".join(map(str, (wins, ties, losses))))
    if ahead + behind < LEAST_DIFFERING:
        return counts, TableCell(text=NO_VALUE, sort="")
    p = sign_test(ahead, behind)
    return counts, TableCell(text=f"{ahead} of {ahead + behind}, {probability(p)}", sort=p)


def _signs(
    pairs: Sequence[tuple[Comparison, str]],
    variant: str,
    better: Callable[[Comparison, str, str], bool],
) -> tuple[int, int, int]:
    """Uses in which a variant is better in more comparisons than worse, in as many, and in fewer.

    Args:
        pairs: Comparisons, each with the variant that is the reference there.
        variant: Who is compared.
        better: Whether the first of two variants is better than the second.
    """
    leads = Counter[str]()
    for one, other in pairs:
        leads[use_of(one)] += better(one, variant, other) - better(one, other, variant)
    signs = Counter((lead > 0) - (lead < 0) for lead in leads.values())
    return signs[1], signs[0], signs[-1]


def _middle(
    found: Sequence[Comparison], variant: str, baseline: str
) -> tuple[TableCell, TableCell, TableCell]:
    """Interquartile means of a variant and of the baseline where there is a scale, and of how many.

    The places are empty where too few comparisons have one.
    """
    scaled = [one for one in found if on_a_scale(one)]
    if len(scaled) < LEAST_TASKS:
        empty = TableCell(text=NO_VALUE, sort="")
        return empty, empty, empty
    seed = zlib.crc32(variant.encode())
    mine, base = (
        interquartile_mean(
            as_many_of_each([runs_of_a_use(group, name) for group in of_each_use(scaled)]),
            np.random.default_rng(seed),
        )
        for name in (variant, baseline)
    )
    text = with_interval(mine.estimate, mine.low, mine.high)
    uses = len(of_each_use(scaled))
    return (
        TableCell(text=text, sort=mine.estimate),
        TableCell(text=plain(base.estimate), sort=base.estimate),
        TableCell(text=f"{len(scaled)} of {counted(uses, 'use')}", sort=len(scaled)),
    )


def _ahead(comparison: Comparison, variant: str, other: str) -> bool:
    """Whether the mean of a variant is better than that of another, rounding errors aside."""
    mine, theirs = (comparison.means[name].estimate for name in (variant, other))
    if math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12):
        return False
    return mine < theirs if comparison.better == "lower" else mine > theirs
