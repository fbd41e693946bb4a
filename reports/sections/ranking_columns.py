"""The columns of the ranked table: each is one entry of `RANKED_COLUMNS`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from reports.blocks import NO_VALUE, Column, TableCell
from reports.folder import RunFolder
from reports.missing_values import NO_SPREAD, dash, why_no_score, why_no_speed
from reports.numbers import between, percent, plain, probability, scaled, with_interval
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.rows import interval_text
from reports.ranked_table.steps_to_threshold import not_reached
from reports.ranked_table.verdicts import verdict_help

SEEDS_HELP = "Mean over seeds with its 95% t interval."
ROUNDS_HELP = "Median of rounds with 10% and 90% quantiles, {where}."
VERDICT_HELP = (
    "Better or worse: significant. Equivalent: shown to lie within the margin. Undecided: neither, "
    "with the number of seeds that would probably decide."
)
NONE_FOUND = "It would have to be more than the whole range of the metric."
EXACT_HELP = "Counted once, {where}; exact, so without interval."


class RankedLine(NamedTuple):
    """One variant of a comparison, as a column sees it."""

    folder: RunFolder
    comparison: Comparison
    values: dict[Any, Any]
    """The line of `RunFolder.ranked_lines`."""

    @property
    def variant(self) -> str:
        """Canonical selector."""
        return str(self.values["selector"])

    def sort(self, name: str) -> float | str:
        """What sorting compares; nothing where there is no number."""
        return "" if math.isnan(self.values[name]) else float(self.values[name])


@dataclass(frozen=True, kw_only=True)
class RankedColumn:
    """A column: its head, and what stands in it."""

    head: Column
    """Its help may say `{where}`, which is what the speed cells timed."""
    cell: Callable[[RankedLine], TableCell]
    of_metric: bool = False
    """Whether unit and better side are those of the metric that ranks."""
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


def _rank(line: RankedLine) -> TableCell:
    values, comparison = line.values, line.comparison
    if not math.isnan(values["rank"]):
        ranks = [ranked.rank for ranked in comparison.ranking]
        tie = "=" if ranks.count(int(values["rank"])) > 1 else ""
        return TableCell(text=f"{int(values['rank'])}{tie}", sort=values["rank"])
    if line.variant in comparison.red:
        reasons = " ".join(comparison.red[line.variant])
        return dash(f"{values['variant']} is not ranked, its certificate is red: {reasons}")
    return TableCell(text=NO_VALUE, sort="")


def _variant(line: RankedLine) -> TableCell:
    return TableCell(
        text=str(line.values["variant"]),
        href=line.comparison.catalog.url(line.variant),
        marks=tuple(mark for mark in str(line.values["marks"]).split(", ") if mark),
    )


def _score(line: RankedLine) -> TableCell:
    values, comparison, variant = line.values, line.comparison, line.variant
    late = not_reached(comparison, variant)
    if late:
        return TableCell(text=late, sort="")
    why = why_no_score(line.folder, comparison.plain or comparison, variant)
    if values["seeds"] == 1 < comparison.most_seeds:
        why = f"{why} {values['variant']} has one seed, so no interval is known.".strip()
    if variant in comparison.means and comparison.means[variant].without_spread:
        why = f"{why} {NO_SPREAD}".strip()
    if math.isnan(values["score"]):
        return dash(why or f"{values['variant']} has no score.")
    text = interval_text(values, "score")
    best = variant in {leader.variant for leader in comparison.leading}
    return TableCell(text=text, sort=values["score"], help=why, best=best)


def _plain_score(line: RankedLine) -> TableCell:
    plain, variant = line.comparison.plain, line.variant
    if plain is None or variant not in plain.means:
        return TableCell(text=NO_VALUE, sort="")
    return TableCell(text=plain.score_text(variant), sort=plain.means[variant].estimate)


def _difference(line: RankedLine) -> TableCell:
    values, comparison = line.values, line.comparison
    if line.variant == comparison.baseline:
        return TableCell(text="baseline", sort=0.0)
    if math.isnan(values["difference"]):
        return TableCell(text=NO_VALUE, sort="")
    found = comparison.compared[line.variant].difference
    told = NO_SPREAD if found is not None and found.without_spread else ""
    text = interval_text(values, "difference", signed=True)
    return TableCell(text=text, sort=values["difference"], help=told)


def _p_value(line: RankedLine) -> TableCell:
    return TableCell(text=probability(line.values["p_adjusted"]), sort=line.sort("p_adjusted"))


def _effect_size(line: RankedLine) -> TableCell:
    if math.isnan(line.values["p_adjusted"]) or not math.isfinite(line.values["effect_size"]):
        return TableCell(text=NO_VALUE, sort="")
    value = line.values["effect_size"]
    return TableCell(text=f"{value:+.2g}", sort=value)


def _detectable(line: RankedLine) -> TableCell:
    """What the test against the baseline would find in 80% of runs."""
    ranked = line.comparison.compared.get(line.variant)
    decision = None if ranked is None else ranked.against_baseline
    limits = line.comparison.ranked_by.limits
    if decision is None or not math.isfinite(decision.detectable):
        return TableCell(text=NO_VALUE, sort="")
    if decision.detectable >= limits[1] - limits[0]:
        return TableCell(text="none", sort=decision.detectable, help=NONE_FOUND)
    return TableCell(text=plain(decision.detectable), sort=decision.detectable)


def _against(reference: str) -> Callable[[RankedLine], TableCell]:
    """How the test against a reference ended.

    Args:
        reference: `baseline` or `uniform`.
    """

    def cell(line: RankedLine) -> TableCell:
        ranked = line.comparison.compared.get(line.variant)
        text = line.values["verdict" if reference == "baseline" else "verdict_uniform"]
        if ranked is None or not text:
            return TableCell(text=NO_VALUE, sort="")
        decision = getattr(ranked, f"against_{reference}")
        return TableCell(text=text, sort=text, help=verdict_help(line.comparison, decision))

    return cell


def _cost(name: str, unit: float = 1.0) -> Callable[[RankedLine], TableCell]:
    """A cost of training or timing, in multiples of a unit."""

    def cell(line: RankedLine) -> TableCell:
        values = line.values
        if math.isnan(values[name]):
            return _missing_cost(line, name)
        if name.startswith("decode_step"):
            # Timings of speed cells have quantiles, which are no interval of an estimate.
            text = between(*(values[f"{name}{end}"] / unit for end in ("", "_low", "_high")))
        else:
            text = interval_text(values, name, unit)
        return TableCell(text=text, sort=values[name])

    return cell


def _missing_cost(line: RankedLine, name: str) -> TableCell:
    folder, comparison, values = line
    if name.startswith("train_") and line.variant not in comparison.red:
        why = why_no_score(folder, comparison, line.variant)
        if not why and comparison.cells.elsewhere(line.variant):
            where = " and ".join(comparison.cells.elsewhere(line.variant))
            why = f"{values['variant']} ran on {where}, the others on {comparison.cells.processor}."
        return dash(why or f"{values['variant']}: its cells stored no {name}.")
    return dash(why_no_speed(folder, comparison, line.variant))


def _parameters(line: RankedLine) -> TableCell:
    count, ratio = line.values["parameters_count"], line.values["parameters_ratio"]
    if math.isnan(count):
        return dash(f"{line.values['variant']}: its cells stored no parameters_count.")
    same = line.variant == line.comparison.catalog.baseline or math.isnan(ratio)
    text = scaled(count) if same else f"{scaled(count)} ({percent(ratio)})"
    return TableCell(text=text, sort=count)


def _flops(line: RankedLine) -> TableCell:
    name = "forward_flops_analytic_count"
    if math.isnan(line.values[name]):
        return _missing_cost(line, name)
    return TableCell(text=scaled(line.values[name]), sort=line.values[name])


def _seeds(line: RankedLine) -> TableCell:
    """Seeds with a score, and those asked where it is fewer."""
    scored, cells = line.values["seeds"], line.comparison.cells.seeds(line.variant)
    text = str(scored) if scored == len(cells) else f"{scored} of {len(cells)}"
    return TableCell(text=text, sort=scored, href=f"#{line.folder.by_id[cells[0]].anchor}")


RANKED_COLUMNS = (
    RankedColumn(head=Column(title="Rank", numeric=True, help="= marks a tie."), cell=_rank),
    RankedColumn(head=Column(title="Variant"), cell=_variant),
    RankedColumn(
        head=Column(title="{metric}", numeric=True, help=SEEDS_HELP), cell=_score, of_metric=True
    ),
    RankedColumn(head=Column(title="To baseline", numeric=True), cell=_difference, of_metric=True),
    RankedColumn(
        head=Column(title="p", unit="Holm", numeric=True, help="Of no difference to the baseline."),
        cell=_p_value,
    ),
    RankedColumn(
        head=Column(
            title="Effect size",
            unit="SD of one seed",
            numeric=True,
            help="Difference to the baseline in standard deviations of one seed.",
        ),
        cell=_effect_size,
    ),
    RankedColumn(
        head=Column(
            title="Detectable difference",
            numeric=True,
            help="Smallest true difference to the baseline that this test finds in 80 % of runs.",
        ),
        cell=_detectable,
        of_metric=True,
    ),
    RankedColumn(
        head=Column(title="Against baseline", help=VERDICT_HELP),
        cell=_against("baseline"),
    ),
    RankedColumn(
        head=Column(title="Against uniform", help=VERDICT_HELP),
        cell=_against("uniform"),
    ),
    RankedColumn(
        head=Column(title="{metric}", unit="whole test", numeric=True, help=SEEDS_HELP),
        cell=_plain_score,
        of_plain=True,
    ),
    RankedColumn(
        head=Column(
            title="Training ↑", unit="tokens/s", numeric=True, better="higher", help=SEEDS_HELP
        ),
        cell=_cost("train_tokens_per_s"),
    ),
    RankedColumn(
        head=Column(title="Step ↓", unit="ms", numeric=True, help=SEEDS_HELP),
        cell=_cost("train_step_time_ms"),
    ),
    RankedColumn(
        head=Column(
            title="Attention alone: decode step ↓", unit="ms", numeric=True, help=ROUNDS_HELP
        ),
        cell=_cost("decode_step_time_ms"),
        from_speed_cells=True,
    ),
    RankedColumn(
        head=Column(title="Attention alone: peak ↓", unit="MB", numeric=True, help=EXACT_HELP),
        cell=_cost("peak_memory_bytes", 1e6),
        from_speed_cells=True,
    ),
    RankedColumn(
        head=Column(
            title="Parameters",
            unit="to baseline",
            numeric=True,
            help="All trained numbers of the model, and how many more than the baseline has.",
        ),
        cell=_parameters,
    ),
    RankedColumn(
        head=Column(title="Attention alone: FLOPs", unit="forward", numeric=True, help=EXACT_HELP),
        cell=_flops,
        from_speed_cells=True,
    ),
    RankedColumn(
        head=Column(title="Seeds", numeric=True, help="Leads to the commands that reproduce them."),
        cell=_seeds,
    ),
)
"""In the order in which they are printed; a new column is one more."""


def head_of(column: RankedColumn, comparison: Comparison, where: str) -> Column:
    """The head of a column in the table of one comparison."""
    plain, head = (comparison.plain or comparison).ranked_by, column.head
    metric = plain if column.of_plain else comparison.ranked_by
    return Column(
        title=head.title.format(metric=metric.arrow),
        unit=metric.unit if column.of_metric else head.unit,
        numeric=head.numeric,
        better=metric.better if column.of_metric or column.of_plain else head.better,
        help=head.help.format(where=where),
    )
