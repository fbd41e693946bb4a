"""The columns of the ranked table: each is one entry of `RANKED_COLUMNS`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from reports.blocks import NO_VALUE, Column, TableCell
from reports.numbers import with_interval
from reports.ranked_table.comparison import Comparison
from reports.sections.ranking_cells import (
    RankedLine,
    against_cell,
    cost_cell,
    detectable_cell,
    difference_cell,
    effect_size_cell,
    flops_cell,
    p_value_cell,
    parameters_cell,
    plain_score_cell,
    rank_cell,
    score_cell,
    seeds_cell,
    variant_cell,
)

SEEDS_HELP = "Mean over seeds with its 95% t interval."
ROUNDS_HELP = "Median of rounds with 10% and 90% quantiles, {where}."
VERDICT_HELP = (
    "Better or worse: significant. Equivalent: shown to lie within the margin. Undecided: neither, "
    "with the number of seeds that would probably decide."
)
EXACT_HELP = "Counted once, {where}; exact, so without interval."
FORMULA_HELP = (
    "By the formula that papers quote, {where}: products of pairs of a query and a key, half of "
    "them under causality, whatever the code computes. Empty where no formula covers the whole "
    "mechanism."
)


@dataclass(frozen=True, kw_only=True)
class RankedColumn:
    """A column: its head, and what stands in it."""

    head: Column
    """Its help may say `{where}`, which is what the speed cells timed."""
    cell: Callable[[RankedLine], TableCell]
    of_metric: bool = False
    """Whether unit and better side are those of the metric that ranks."""
    of_planned: bool = False
    """Whether its unit is that of the planned tests, which are of the whole test."""
    of_plain: bool = False
    """Shown only where the table ranks by another metric than that of the whole test."""
    from_speed_cells: bool = False
    """Left out of the reports of runs that timed nothing."""


def of_training(title: str, metric: str, unit: str) -> RankedColumn:
    """A column of any metric that training stores, as a mean over seeds."""

    def cell(line: RankedLine) -> TableCell:
        mean = line.comparison.cells.trained(line.variant, metric)
        if math.isnan(mean.estimate):
            return TableCell(text=NO_VALUE, sort="")
        return TableCell(text=with_interval(mean.estimate, mean.low, mean.high), sort=mean.estimate)

    return RankedColumn(
        head=Column(title=title, unit=unit, numeric=True, help=SEEDS_HELP), cell=cell
    )


RANKED_COLUMNS = (
    RankedColumn(head=Column(title="Rank", numeric=True, help="= marks a tie."), cell=rank_cell),
    RankedColumn(head=Column(title="Variant"), cell=variant_cell),
    RankedColumn(
        head=Column(title="{metric}", numeric=True, help=SEEDS_HELP),
        cell=score_cell,
        of_metric=True,
    ),
    RankedColumn(
        head=Column(title="To baseline", numeric=True), cell=difference_cell, of_metric=True
    ),
    RankedColumn(
        head=Column(title="p", unit="Holm", numeric=True, help="Of no difference to the baseline."),
        cell=p_value_cell,
    ),
    RankedColumn(
        head=Column(
            title="Effect size",
            unit="SD of the difference",
            numeric=True,
            help="Difference to the baseline in standard deviations of the difference of one seed.",
        ),
        cell=effect_size_cell,
    ),
    RankedColumn(
        head=Column(
            title="Detectable difference",
            numeric=True,
            help="Smallest true difference to the baseline that this test finds in 80 % of runs.",
        ),
        cell=detectable_cell,
        of_planned=True,
    ),
    RankedColumn(
        head=Column(title="Against baseline", help=VERDICT_HELP),
        cell=against_cell("baseline"),
    ),
    RankedColumn(
        head=Column(title="Against uniform", help=VERDICT_HELP),
        cell=against_cell("uniform"),
    ),
    RankedColumn(
        head=Column(title="{metric}", unit="whole test", numeric=True, help=SEEDS_HELP),
        cell=plain_score_cell,
        of_plain=True,
    ),
    RankedColumn(
        head=Column(
            title="Training ↑", unit="tokens/s", numeric=True, better="higher", help=SEEDS_HELP
        ),
        cell=cost_cell("train_tokens_per_s"),
    ),
    RankedColumn(
        head=Column(title="Step ↓", unit="ms", numeric=True, help=SEEDS_HELP),
        cell=cost_cell("train_step_time_ms"),
    ),
    RankedColumn(
        head=Column(
            title="Attention alone: decode step ↓", unit="ms", numeric=True, help=ROUNDS_HELP
        ),
        cell=cost_cell("decode_step_time_ms"),
        from_speed_cells=True,
    ),
    RankedColumn(
        head=Column(title="Attention alone: peak ↓", unit="MB", numeric=True, help=EXACT_HELP),
        cell=cost_cell("peak_memory_bytes", 1e6),
        from_speed_cells=True,
    ),
    RankedColumn(
        head=Column(
            title="Parameters",
            unit="to baseline",
            numeric=True,
            help="All trained numbers of the model, and how many more than the baseline has.",
        ),
        cell=parameters_cell,
    ),
    RankedColumn(
        head=Column(
            title="Attention alone: FLOPs by formula",
            unit="forward",
            numeric=True,
            help=FORMULA_HELP,
        ),
        cell=flops_cell,
        from_speed_cells=True,
    ),
    RankedColumn(
        head=Column(title="Seeds", numeric=True, help="Leads to the commands that reproduce them."),
        cell=seeds_cell,
    ),
)
"""In the order in which they are printed; a new column is one more."""


def head_of(column: RankedColumn, comparison: Comparison, where: str) -> Column:
    """The head of a column in the table of one comparison."""
    plain, head = comparison.whole.ranked_by, column.head
    metric = plain if column.of_plain or column.of_planned else comparison.ranked_by
    return Column(
        title=head.title.format(metric=metric.arrow),
        unit=metric.unit if column.of_metric or column.of_planned else head.unit,
        numeric=head.numeric,
        better=metric.better if column.of_metric or column.of_plain else head.better,
        help=head.help.format(where=where),
    )
