"""What all tasks say together of each variant, against the baseline and uniform attention."""

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from reports.blocks import NO_VALUE, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.needs import beats, decides
from reports.normalized_scores import normalized, on_a_scale
from reports.numbers import plain, probability, with_interval
from reports.quality_cost import improvement, shared_with, use_of
from reports.ranked_table.comparison import Comparison
from results.statistics import Interval, interquartile_mean, sign_test

LEAST_TASKS = 3
"""Fewer tasks say nothing together: a sign test of three cannot be significant either."""
MOST_ROWS = 40
HOW_TO_READ = (
    "Wins, ties and losses count the tasks on which a variant is significantly better, n.s. or "
    "significantly worse. Tasks of one use of attention are dependent, so the other columns count "
    "each use once. The sign test asks whether means are better in more uses than chance would "
    "give. Its p is not corrected for the number of lines. P(better) is the probability that a run "
    "is better than a run of the baseline, averaged over uses, with a 95% bootstrap interval. The "
    "interquartile mean is that of the middle half of all runs, where 0 is uniform attention and 1 "
    "the best possible score; tasks without a best possible score are left out. Bootstrap "
    "intervals of few seeds are too narrow. Variants took part in different tasks, so the order of "
    "lines is not a ranking."
)


IQM_HELP = "In brackets that of the baseline on the same tasks, and how many tasks they are."


def all_tasks_section(folder: RunFolder) -> Section | None:
    """One line for each variant that shares enough tasks with the baseline; None without any."""
    found = [one for one in folder.comparisons if decides(one)]
    base = folder.catalog.baseline
    shared = {
        name: many for name, many in shared_with(found, base).items() if len(many) >= LEAST_TASKS
    }
    if not shared:
        return None
    levels = {name: improvement(many, name, base) for name, many in shared.items()}
    order = sorted(shared, key=lambda name: (-levels[name].estimate, name))[:MOST_ROWS]
    label = folder.catalog.label(base)
    table = TableBlock(
        key="all-tasks-table",
        title=f"Variants over at least {LEAST_TASKS} tasks",
        columns=_columns(label),
        rows=tuple(_row(folder, name, shared[name], levels[name]) for name in order),
    )
    return Section(
        key="all-tasks",
        title="Summary over all tasks",
        blocks=(Paragraph(HOW_TO_READ), table),
        group="summary",
    )


def _columns(baseline: str) -> tuple[Column, ...]:
    test = (
        "Uses in which more tasks have the better mean than the worse one, of those that differ, "
        "and the p of a sign test."
    )
    place = "Place by the mean score, and of how many variants."
    return (
        Column(title="Variant"),
        Column(title="Tasks", numeric=True),
        Column(
            title="Mean rank",
            numeric=True,
            better="lower",
            help=place,
        ),
        Column(title=f"Against {baseline}", unit="wins\N{EN DASH}ties\N{EN DASH}losses"),
        Column(title="Sign test", unit="better of differing, p", help=test),
        Column(title="Against uniform", unit="wins\N{EN DASH}ties\N{EN DASH}losses"),
        Column(title="Sign test", unit="better of differing, p", help=test),
        Column(title="P(better)", unit=f"than {baseline}", numeric=True, better="higher"),
        Column(
            title="Interquartile mean",
            unit=f"{baseline} there",
            numeric=True,
            better="higher",
            help=IQM_HELP,
        ),
    )


def _row(
    folder: RunFolder, variant: str, found: Sequence[Comparison], level: Interval
) -> tuple[TableCell, ...]:
    ranks = [1.0 + [*one.compared].index(variant) for one in found]
    sizes = [len(one.compared) for one in found]
    catalog = folder.catalog
    marks = ("control",) if catalog.flag(variant, "control") else ()
    return (
        TableCell(text=catalog.label(variant), marks=marks),
        TableCell(text=str(len(found)), sort=len(found)),
        TableCell(text=f"{fmean(ranks):.1f} of {fmean(sizes):.1f}", sort=fmean(ranks)),
        *_against(found, variant, [one.baseline for one in found]),
        *_against(found, variant, [one.uniform_baseline for one in found]),
        TableCell(text=with_interval(level.estimate, level.low, level.high), sort=level.estimate),
        _middle(found, variant, catalog.baseline),
    )


def _against(
    found: Sequence[Comparison], variant: str, others: Sequence[str | None]
) -> tuple[TableCell, TableCell]:
    """Significant wins, ties and losses, and the sign test on means."""
    pairs = [
        (one, other)
        for one, other in zip(found, others, strict=True)
        if other and other != variant and other in one.compared
    ]
    if not pairs:
        return TableCell(text=NO_VALUE, sort=""), TableCell(text=NO_VALUE, sort="")
    wins = sum(beats(one, variant, other) for one, other in pairs)
    losses = sum(beats(one, other, variant) for one, other in pairs)
    leads = Counter[str]()
    for one, other in pairs:
        leads[use_of(one)] += _ahead(one, variant, other) - _ahead(one, other, variant)
    ahead, behind = (sum(sign * lead > 0 for lead in leads.values()) for sign in (1, -1))
    p = sign_test(ahead, behind)
    return (
        TableCell(text="\N{EN DASH}".join(map(str, (wins, len(pairs) - wins - losses, losses)))),
        TableCell(text=f"{ahead} of {ahead + behind}, {probability(p)}", sort=p),
    )


def _middle(found: Sequence[Comparison], variant: str, baseline: str) -> TableCell:
    """Interquartile means of a variant and of the baseline on the tasks that have a scale."""
    scaled = [one for one in found if on_a_scale(one)]
    if len(scaled) < LEAST_TASKS:
        return TableCell(text=NO_VALUE, sort="")
    seed = zlib.crc32(variant.encode())
    mine, base = (
        interquartile_mean([normalized(one, name) for one in scaled], np.random.default_rng(seed))
        for name in (variant, baseline)
    )
    text = with_interval(mine.estimate, mine.low, mine.high)
    return TableCell(text=f"{text} ({plain(base.estimate)}, {len(scaled)})", sort=mine.estimate)


def _ahead(comparison: Comparison, variant: str, other: str) -> bool:
    """Whether the mean of a variant is better than that of another, rounding errors aside."""
    mine, theirs = (comparison.means[name].estimate for name in (variant, other))
    if math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12):
        return False
    return mine < theirs if comparison.better == "lower" else mine > theirs
