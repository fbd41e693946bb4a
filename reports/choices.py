"""The first screen in words: one sentence of result, and the table of what to choose."""

import math
from collections.abc import Sequence

from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.catalog import uncapitalized
from reports.folder import RunFolder
from reports.needs import Need, needs, often_tied, overall_cost, relative_cost
from reports.numbers import counted, factor, p_text
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.steps_to_threshold import STEPS

MOST_ROWS = 8
OTHER_TASKS = "on other tasks"
COST_HELP = (
    "CPU time of a training step over that of the baseline. It is that “on other tasks” of the use "
    "where the two ran on different processors."
)
MOST_NAMED = 3
"""Needs that one sentence or one cell names."""


def headline(folder: RunFolder) -> str:
    """One sentence that says what the run shows, made by rule."""
    if not folder.catalog.ranks:
        return (
            f"The preset “{folder.catalog.preset}” shows that everything works. Its budget is too "
            "small to choose a variant."
        )
    if not any(comparison.ranking for comparison in folder.comparisons):
        return "There is no score that could choose a variant."
    if all(comparison.most_seeds < 2 for comparison in folder.comparisons):
        return "One seed each cannot show a significant difference; run more seeds to choose."
    found = needs(folder)
    if not found:
        return "No task has two variants with several seeds, so there is nothing to choose between."
    return _result(folder, found)


def _result(folder: RunFolder, found: Sequence[Need]) -> str:
    base = folder.catalog.label(folder.catalog.baseline) if folder.catalog.baseline else ""
    decided = sorted((need for need in found if need.beats_baseline), key=_strength)
    open_ = [need for need in found if not need.beats_baseline]
    if not decided:
        return f"No variant is significantly better than {base or 'the others'}. {_tied(open_)}"
    parts = [
        f"{folder.catalog.label(need.variant)} for {uncapitalized(need.title)}"
        for need in decided[:MOST_NAMED]
    ]
    more = len(decided) - len(parts)
    if more:
        parts.append(f"other variants for {counted(more, 'more use')}")
    first = f"Significantly better than {base}: {join(parts)}."
    return f"{first} {_tied(open_, other=True)}".strip()


def _tied(found: Sequence[Need], *, other: bool = False) -> str:
    """What is tied with the best where nothing is better than the baseline."""
    if not found:
        return ""
    label = found[0].comparisons[0].catalog.label
    use = "use" if len(found) == 1 else "uses"
    where = f"In the {'other ' if other else ''}{len(found)} {use} at this size"
    if len(found) == 1:
        where = f"For {uncapitalized(found[0].title)} at this size"
    often = often_tied(found)[:2]
    if not often:
        return f"{where} no variant is tied with the best in half of them."
    if len(often) == 1:
        return f"{where} {label(often[0][0])} is most often tied with the best."
    costs = {name: overall_cost(found, name) for name, _ in often}
    names = join([label(name) for name in costs])
    told = f"{where} {names} are tied with the best"
    told += "" if all(count == len(found) for _, count in often) else " most often"
    known = {name: cost for name, cost in costs.items() if math.isfinite(cost)}
    if len({f"{cost:.2g}" for cost in known.values()}) < 2:
        return f"{told}."
    return f"{told}, and {label(min(known, key=lambda name: known[name]))} is the cheaper."


def choices_table(folder: RunFolder) -> TableBlock | None:
    """A need, the variant to choose, the evidence, and its cost; None where nothing decides."""
    found = needs(folder) if folder.catalog.ranks else []
    if not found:
        return None
    decided = sorted((need for need in found if need.beats_baseline), key=_strength)
    clear = [need for need in found if not need.beats_baseline and need.beats_uniform]
    unclear = [need for need in found if not need.beats_baseline and not need.beats_uniform]
    if len(found) <= MOST_ROWS:
        rows = [_row(need) for need in (*decided, *clear, *unclear)]
    else:
        groups = [group for group in (clear, unclear) if group]
        kept = decided[: MOST_ROWS - len(groups)]
        rows = [_row(need) for need in kept]
        rows += [_merged(clear, learned=True)] if clear else []
        rows += [_merged(unclear, learned=False)] if unclear else []
    return _table("choices", "What to choose", rows, _dropped(decided, rows))


def every_need(folder: RunFolder) -> TableBlock | None:
    """The same with a row for each need; None where nothing decides."""
    found = needs(folder) if folder.catalog.ranks else []
    if not found:
        return None
    order = sorted(found, key=lambda need: (not need.beats_baseline, need.title))
    return _table("every-need", "A choice for each use of attention", [*map(_row, order)])


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
            Column(title="Need", help="A use of attention, and the task with the evidence."),
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


def _strength(need: Need) -> tuple[float, str]:
    return need.p_baseline, need.title


def _title(need: Need) -> str:
    return need.title[:1].upper() + need.title[1:]


def _row(need: Need) -> tuple[TableCell, ...]:
    comparison = need.evidence
    name = comparison.catalog.label(need.variant) if need.variant else NO_VALUE
    task = comparison.catalog.task_label(comparison.task)
    where = (*(() if task == need.title else (task,)), *filter(None, (comparison.part,)))
    return (
        TableCell(text=_title(need), marks=where),
        TableCell(text=name, code=bool(need.variant)),
        TableCell(text=_evidence(need)),
        _cost([comparison], need.variant, need.comparisons),
    )


def synopsis(need: Need | None) -> str:
    """One line beside the title of a use of attention."""
    if need is None:
        return ""
    if not need.variant:
        return "No variant has learned the task."
    return f"{need.evidence.catalog.label(need.variant)}: {_evidence(need)}"


def _evidence(need: Need) -> str:
    comparison, variant = need.evidence, need.variant
    if not variant:
        return "no variant has learned the task"
    mine = _measured(comparison, variant)
    seeds = counted(comparison.asked_seeds(variant), "seed")
    base, uniform = comparison.baseline, comparison.uniform_baseline
    if need.beats_baseline and base:
        return f"{mine} against {_reference(comparison, base)}, {seeds}, {p_text(need.p_baseline)}"
    tied = "" if variant == base or not base else f", n.s. against {_reference(comparison, base)}"
    if need.beats_uniform and uniform:
        if uniform not in comparison.compared:
            return f"{mine}, not reached by {comparison.catalog.label(uniform)}, {seeds}{tied}"
        p = p_text(comparison.p_better(variant, uniform))
        return f"{mine} against {_reference(comparison, uniform)}, {seeds}, {p}{tied}"
    if uniform and uniform in comparison.compared:
        return f"{mine}, n.s. against {_reference(comparison, uniform)}, {seeds}"
    return f"{mine}, {seeds}{tied}"


def _measured(comparison: Comparison, variant: str) -> str:
    """The score of a variant with its metric, as `accuracy 0.9` or `200 steps to accuracy 0.99`."""
    title, score = comparison.ranked_by.title, comparison.short_score(variant)
    if comparison.metric == STEPS:
        return f"{score} {uncapitalized(title)}"
    return f"{title} {score}"


def _reference(comparison: Comparison, name: str) -> str:
    return f"{comparison.short_score(name)} of {comparison.catalog.label(name)}"


def _cost(
    found: Sequence[Comparison], variant: str, others: Sequence[Comparison] = ()
) -> TableCell:
    """Cost on some tasks; on others where a variant and the baseline ran on other processors."""
    for tasks, marks in ((found, ()), (others, (OTHER_TASKS,))):
        ratio = relative_cost(tasks, variant)
        if math.isfinite(ratio):
            return TableCell(text=f"{factor(ratio)} training step", marks=marks)
    return TableCell(text=NO_VALUE)


def _merged(found: Sequence[Need], *, learned: bool) -> tuple[TableCell, ...]:
    """One row for the needs where no variant is better than the baseline."""
    if len(found) == 1:
        return _row(found[0])
    names = join([uncapitalized(need.title) for need in found], MOST_NAMED)
    often = often_tied(found)
    label = found[0].comparisons[0].catalog.label
    variant, count = often[0] if often else ("", 0)
    told = f"tied with the best in {count} of {len(found)} uses" if variant else "no common choice"
    end = "the best is better than uniform attention" if learned else "n.s. against uniform"
    everything = [comparison for need in found for comparison in need.comparisons]
    return (
        TableCell(text=f"{len(found)} other uses", marks=(names,)),
        TableCell(text=label(variant) if variant else NO_VALUE, code=bool(variant)),
        TableCell(text=f"{told}; {end}"),
        _cost(everything, variant),
    )
