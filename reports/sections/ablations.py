"""Ablations: one axis of a base changed at a time."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.ablation_rows import ablation_table
from reports.blocks import NO_VALUE, Block, Column, Paragraph, Section, TableBlock, TableCell, clean
from reports.folder import RunFolder
from reports.missing_values import NO_SPREAD, dash, why_no_score
from reports.numbers import probability
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.rows import interval_text
from reports.sections.studies import rate_of

EACH_LINE = (
    "Each line changes one axis of the base and nothing else. Differences are to the base on the "
    "same seeds, with 95% t intervals."
)
OTHER_RATES = (
    "Each line changes one axis of the base, and some were trained at another learning rate, too: "
    "{lines}. Differences are to the base on the same seeds, with 95% t intervals."
)
PLANNED_TESTS = "The tests are the primary ones against the baseline."
OTHER_TESTS = (
    "Where the base is the baseline, the tests are the primary ones. Others are paired t tests "
    "with Holm's correction over the lines."
)


def ablation_section(folder: RunFolder) -> Section | None:
    """Tables of changed axes; None if the run has no ablation."""
    table = ablation_table(folder.comparisons)
    if table.empty:
        return None
    tests = PLANNED_TESTS if table["planned"].all() else OTHER_TESTS
    other = _at_other_rates(folder, table)
    lead = OTHER_RATES.format(lines=join(other)) if other else EACH_LINE
    blocks: list[Block] = [Paragraph(f"{lead} {tests}")]
    for at, (_, group) in enumerate(table.groupby(["comparison", "base"], sort=True), start=1):
        blocks.append(_ablation(folder, f"ablation-{at}", group))
    return Section(key="ablation", title="Ablations", blocks=tuple(blocks))


def _at_other_rates(folder: RunFolder, table: pd.DataFrame) -> list[str]:
    """Variants that were trained at other learning rates than their base, as before it gave its."""
    found = []
    for line in table.to_dict("records"):
        usual = _rates(folder, line, "base")
        if usual and _rates(folder, line, "variant") - usual:
            found.append(folder.catalog.label(str(line["variant"])))
    return [*dict.fromkeys(found)]


def _rates(folder: RunFolder, line: Mapping[Any, Any], which: str) -> set[object]:
    """Learning rates of the variant of a line, or of its base."""
    comparison = next(c for c in folder.comparisons if c.key == line["comparison"])
    cells = comparison.cells.seeds(str(line[which]))
    return {rate_of(folder.by_id[id_].cell.protocol) for id_ in cells}


def _ablation(folder: RunFolder, key: str, group: pd.DataFrame) -> TableBlock:
    lines = [dict(line) for line in group.to_dict("records")]
    comparison = next(c for c in folder.comparisons if c.key == lines[0]["comparison"])
    metric = comparison.ranked_by
    rows = [_ablation_row(folder, comparison, line, red=lines[0]["red"]) for line in lines]
    return TableBlock(
        key=key,
        title=(
            f"{comparison.title}: one axis of "
            f"{comparison.catalog.label(str(lines[0]['base']))} changed"
        ),
        columns=(
            Column(title="Axis"),
            Column(title="Value"),
            Column(title="Variant"),
            Column(title=metric.arrow, unit=metric.unit, numeric=True, better=metric.better),
            Column(title="To base", unit=metric.unit, numeric=True, better=metric.better),
            Column(title="p", unit="Holm", numeric=True),
        ),
        rows=tuple(rows),
        notes=(NO_SPREAD,) if any(line["without_spread"] for line in lines) else (),
        dimmed=tuple(bool(line["red"]) for line in lines),
    )


def _ablation_row(
    folder: RunFolder, comparison: Comparison, line: dict[Any, Any], *, red: bool
) -> tuple[TableCell, ...]:
    variant, empty = str(line["variant"]), TableCell(text=NO_VALUE, sort="")
    name = comparison.catalog.label(variant)
    if math.isnan(line["score"]):
        score = dash(why_no_score(folder, comparison, variant))
    else:
        help_ = NO_SPREAD if comparison.means[variant].without_spread else ""
        score = TableCell(text=interval_text(line, "score"), sort=line["score"], help=help_)
    difference = p = empty
    if not (math.isnan(line["difference"]) or line["red"] or red):
        text = interval_text(line, "difference", signed=True)
        help_ = NO_SPREAD if line["without_spread"] else ""
        difference = TableCell(text=text, sort=line["difference"], help=help_)
        if math.isfinite(line["p_adjusted"]):
            p = TableCell(text=probability(line["p_adjusted"]), sort=line["p_adjusted"])
    return (
        TableCell(text=clean(line["axis"])),
        TableCell(text=clean(line["value"]) or NO_VALUE),
        TableCell(text=name, marks=("red certificate",) if line["red"] else ()),
        score,
        difference,
        p,
    )
