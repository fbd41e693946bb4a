"""The cells of the ranked table: one function for each column."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from reports.blocks import NO_VALUE, TableCell
from reports.folder import RunFolder
from reports.missing_values import NO_SPREAD, dash, why_no_score, why_no_speed
from reports.numbers import between, percent, probability, scaled
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.rows import interval_text
from reports.ranked_table.steps_to_threshold import not_reached
from reports.ranked_table.verdicts import detectable_text, planned, verdict_help


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


def rank_cell(line: RankedLine) -> TableCell:
    """The rank, with a mark where others share it."""
    values, comparison = line.values, line.comparison
    if not math.isnan(values["rank"]):
        ranks = [ranked.rank for ranked in comparison.ranking]
        tie = "=" if ranks.count(int(values["rank"])) > 1 else ""
        return TableCell(text=f"{int(values['rank'])}{tie}", sort=values["rank"])
    if line.variant in comparison.red:
        reasons = " ".join(comparison.red[line.variant])
        return dash(f"{values['variant']} is not ranked, its certificate is red: {reasons}")
    return TableCell(text=NO_VALUE, sort="")


def variant_cell(line: RankedLine) -> TableCell:
    """The name, with its marks and where it leads."""
    return TableCell(
        text=str(line.values["variant"]),
        href=line.comparison.catalog.url(line.variant),
        marks=tuple(mark for mark in str(line.values["marks"]).split(", ") if mark),
    )


def score_cell(line: RankedLine) -> TableCell:
    """The mean score, or why there is none."""
    values, comparison, variant = line.values, line.comparison, line.variant
    late = not_reached(comparison, variant)
    if late:
        return TableCell(text=late, sort="")
    why = why_no_score(line.folder, comparison.whole, variant)
    if values["seeds"] == 1 < comparison.most_seeds:
        why = f"{why} {values['variant']} has one seed, so no interval is known.".strip()
    if variant in comparison.means and comparison.means[variant].without_spread:
        why = f"{why} {NO_SPREAD}".strip()
    if math.isnan(values["score"]):
        return dash(why or f"{values['variant']} has no score.")
    text = interval_text(values, "score")
    best = variant in {leader.variant for leader in comparison.leading}
    return TableCell(text=text, sort=values["score"], help=why, best=best)


def plain_score_cell(line: RankedLine) -> TableCell:
    """The score on the whole test, beside another one that ranks."""
    plain, variant = line.comparison.plain, line.variant
    if plain is None or variant not in plain.means:
        return TableCell(text=NO_VALUE, sort="")
    return TableCell(text=plain.score_text(variant), sort=plain.means[variant].estimate)


def difference_cell(line: RankedLine) -> TableCell:
    """The difference to the baseline."""
    values, comparison = line.values, line.comparison
    if line.variant == comparison.baseline:
        return TableCell(text="baseline", sort=0.0)
    if math.isnan(values["difference"]):
        return TableCell(text=NO_VALUE, sort="")
    found = comparison.compared[line.variant].difference
    told = NO_SPREAD if found is not None and found.without_spread else ""
    text = interval_text(values, "difference", signed=True)
    return TableCell(text=text, sort=values["difference"], help=told)


def p_value_cell(line: RankedLine) -> TableCell:
    """The adjusted p of the planned test against the baseline."""
    return TableCell(text=probability(line.values["p_adjusted"]), sort=line.sort("p_adjusted"))


def effect_size_cell(line: RankedLine) -> TableCell:
    """The difference to the baseline in standard deviations; nothing where none was tested."""
    if math.isnan(line.values["p_adjusted"]) or not math.isfinite(line.values["effect_size"]):
        return TableCell(text=NO_VALUE, sort="")
    value = line.values["effect_size"]
    return TableCell(text=f"{value:+.2g}", sort=value)


def detectable_cell(line: RankedLine) -> TableCell:
    """What the test against the baseline would find in 80% of runs."""
    whole = line.comparison.whole
    decision = planned(whole, line.variant, whole.baseline)
    value = math.nan if decision is None else decision.detectable
    text = detectable_text(value, whole.ranked_by.limits)
    return TableCell(text=text or NO_VALUE, sort=value if text else "")


def against_cell(reference: str) -> Callable[[RankedLine], TableCell]:
    """How the test against a reference ended.

    Args:
        reference: `baseline` or `uniform`.
    """

    def cell(line: RankedLine) -> TableCell:
        text = line.values["verdict" if reference == "baseline" else "verdict_uniform"]
        if not text:
            return TableCell(text=NO_VALUE, sort="")
        whole = line.comparison.whole
        name = whole.baseline if reference == "baseline" else whole.uniform_baseline
        told = verdict_help(whole, planned(whole, line.variant, name))
        return TableCell(text=text, sort=text, help=told)

    return cell


def cost_cell(name: str, unit: float = 1.0) -> Callable[[RankedLine], TableCell]:
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


def parameters_cell(line: RankedLine) -> TableCell:
    """Trained numbers, and how many more than the baseline has."""
    count, ratio = line.values["parameters_count"], line.values["parameters_ratio"]
    if math.isnan(count):
        return dash(f"{line.values['variant']}: its cells stored no parameters_count.")
    same = line.variant == line.comparison.catalog.baseline or math.isnan(ratio)
    text = scaled(count) if same else f"{scaled(count)} ({percent(ratio)})"
    return TableCell(text=text, sort=count)


def flops_cell(line: RankedLine) -> TableCell:
    """Operations of a forward call."""
    name = "forward_flops_analytic_count"
    if math.isnan(line.values[name]):
        if not math.isnan(line.values["peak_memory_bytes"]):
            return dash(f"{line.values['variant']}: no formula covers the whole mechanism.")
        return _missing_cost(line, name)
    return TableCell(text=scaled(line.values[name]), sort=line.values[name])


def seeds_cell(line: RankedLine) -> TableCell:
    """Seeds with a score, and those asked where it is fewer."""
    scored, cells = line.values["seeds"], line.comparison.cells.seeds(line.variant)
    text = str(scored) if scored == len(cells) else f"{scored} of {len(cells)}"
    return TableCell(text=text, sort=scored, href=f"#{line.folder.by_id[cells[0]].anchor}")
