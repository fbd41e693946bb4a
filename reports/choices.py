"""The table of what to choose: a use of attention, a variant, the evidence and the cost."""

import math
from collections.abc import Sequence

from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.catalog import uncapitalized
from reports.evidence import evidence_text, stands_for
from reports.folder import RunFolder
from reports.needs import Need, divided, needs, often_tied
from reports.numbers import counted, plain
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.training_cost import ABOUT_THE_SAME, CostNoise, cost_text, relative_cost

MOST_ROWS = 8
OTHER_TASKS = "on other tasks"
NONE_YET = "none yet"
"""In the place of a variant where none is above uniform attention."""
COST_HELP = (
    "CPU time of a training step over that of the baseline, with its 95% interval over seeds. It "
    "is that “on other tasks” of the use where the two ran on different processors."
)
NEED_HELP = (
    "A use of attention, the test with the evidence, of how many of the use it is one, and how "
    "many variants were compared with the baseline."
)
RULE = (
    "The rule: of the variants that are tied with the best on some test of a use, the table names "
    "the one that is significantly better than the baseline on most tests. Of several, those come "
    "first that are above the best non-neural baseline in every seed, then those that are tied "
    "with the best on most tests, then the cheapest, then the baseline. The row shows the test "
    "with the smallest p. A generated test is a small model of its use, and a choice among few "
    "contenders says little. Where nothing is significantly above uniform attention, nothing is "
    "named."
)
MOST_NAMED = 3
"""Needs that one cell names."""


def choices_table(folder: RunFolder) -> TableBlock | None:
    """A need, the variant to choose, the evidence, and its cost; None where nothing decides."""
    found = needs(folder) if folder.catalog.ranks else []
    if not found:
        return None
    decided, clear, open_ = divided(found)
    if len(found) <= MOST_ROWS:
        rows = [_row(need) for need in (*decided, *clear, *open_)]
    else:
        kept = decided[: MOST_ROWS - bool(clear) - bool(open_)]
        rows = [_row(need) for need in kept]
        rows += [_merged(clear)] if clear else []
        rows += [_merged_open(open_)] if open_ else []
    notes = (*_dropped(decided, rows), RULE, _about_costs(found[0].noise))
    return _table("choices", "What to choose", rows, notes)


def every_need(folder: RunFolder) -> TableBlock | None:
    """The same with a row for each need; None where nothing decides."""
    found = needs(folder) if folder.catalog.ranks else []
    if not found:
        return None
    order = sorted(found, key=lambda need: (need.is_open, not need.beats_baseline, need.title))
    return _table("every-need", "A choice for each use of attention", [*map(_row, order)])


def _about_costs(noise: CostNoise) -> str:
    """From where on two costs of the run differ."""
    told = f"A cost is “{ABOUT_THE_SAME}” within a factor of {plain(noise.factor)}"
    why = f"({noise.source})"
    if noise.measured:
        why = (
            "(twice the half-width of the cost of the A/A control, the baseline trained a second "
            "time)"
        )
    return f"{told} {why}, and “unclear” where its 95% interval reaches into it."


def _table(
    key: str,
    title: str,
    rows: Sequence[tuple[TableCell, ...]],
    notes: tuple[str, ...] = (),
) -> TableBlock:
    return TableBlock(
        key=key,
        title=title,
        columns=(
            Column(title="Use", help=NEED_HELP),
            Column(title="Variant"),
            Column(title="Evidence", help="Mean test score over seeds; p after Holm's correction."),
            Column(title="Cost", help=COST_HELP),
        ),
        rows=tuple(rows),
        notes=notes,
    )


def _dropped(decided: Sequence[Need], rows: Sequence[tuple[TableCell, ...]]) -> tuple[str, ...]:
    """Say which needs the table has no room for."""
    shown = {row[0].text for row in rows}
    left = [uncapitalized(need.title) for need in decided if _title(need) not in shown]
    return (f"A variant is significantly better also for {join(left)}.",) if left else ()


def _title(need: Need) -> str:
    return need.title[:1].upper() + need.title[1:]


def _row(need: Need) -> tuple[TableCell, ...]:
    comparison = need.evidence
    where = (
        stands_for(comparison),
        *filter(None, (comparison.part,)),
        _share(need),
        _rivals(comparison),
    )
    open_ = need.is_open
    name = NONE_YET if open_ else comparison.catalog.label(need.variant)
    return (
        TableCell(text=_title(need), marks=tuple(filter(None, where))),
        TableCell(text=name, code=not open_),
        TableCell(text=_capitalized(evidence_text(need))),
        TableCell(text=NO_VALUE)
        if open_
        else _cost([comparison], need.variant, need.noise, need.comparisons),
    )


def _share(need: Need) -> str:
    """Of how many tests of the use the shown one is one."""
    count = len(need.comparisons)
    return f"one of {count} tests" if count > 1 else ""


def _rivals(comparison: Comparison) -> str:
    """How many contenders the baseline has, or all of them where it is not among them."""
    others = [name for name in comparison.contenders if name != comparison.baseline]
    return counted(len(others), "contender")


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def synopsis(need: Need | None) -> str:
    """One line beside the title of a use of attention."""
    if need is None:
        return ""
    if need.is_open:
        return f"{_capitalized(evidence_text(need))}."
    return f"{need.evidence.catalog.label(need.variant)}: {evidence_text(need)}"


def _cost(
    found: Sequence[Comparison],
    variant: str,
    noise: CostNoise,
    others: Sequence[Comparison] = (),
) -> TableCell:
    """Cost on some tasks; on others where a variant and the baseline ran on other processors."""
    if found and variant == found[0].catalog.baseline:
        return TableCell(text="the baseline")
    for tasks, marks in ((found, ()), (others, (OTHER_TASKS,))):
        cost = relative_cost(tasks, variant)
        if math.isfinite(cost.estimate):
            return TableCell(text=f"{cost_text(cost, noise)} training step", marks=marks)
    return TableCell(text=NO_VALUE)


def _merged(found: Sequence[Need]) -> tuple[TableCell, ...]:
    """One row for the needs where no variant is better than the baseline."""
    if len(found) == 1:
        return _row(found[0])
    often = often_tied(found)
    label = found[0].comparisons[0].catalog.label
    variant, count = often[0] if often else ("", 0)
    base = found[0].comparisons[0].catalog.baseline
    told = f"tied with the best in {count} of {len(found)} uses" if variant else "no common choice"
    if base:
        told = f"nothing is significantly better than {label(base)}; {told}"
    if all(need.beats_uniform for need in found):
        told += "; the best is better than uniform attention"
    everything = [comparison for need in found for comparison in need.comparisons]
    return (
        _many(found),
        TableCell(text=label(variant) if variant else NO_VALUE, code=bool(variant)),
        TableCell(text=_capitalized(told)),
        _cost(everything, variant, found[0].noise),
    )


def _merged_open(found: Sequence[Need]) -> tuple[TableCell, ...]:
    """One row for the needs where no variant is above uniform attention."""
    if len(found) == 1:
        return _row(found[0])
    told = "No variant is significantly above uniform attention"
    cells = (TableCell(text=NONE_YET), TableCell(text=told), TableCell(text=NO_VALUE))
    return (_many(found), *cells)


def _many(found: Sequence[Need]) -> TableCell:
    names = join([uncapitalized(need.title) for need in found], MOST_NAMED)
    return TableCell(text=f"{len(found)} other uses", marks=(names,))
