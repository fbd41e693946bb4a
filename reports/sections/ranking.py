"""The ranked table of each comparison, as blocks."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any

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
from reports.catalog import uncapitalized
from reports.choices import synopsis
from reports.folder import RunFolder
from reports.missing_values import LEGEND, NO_SPREAD, dash, why_no_score, why_no_speed
from reports.needs import needs
from reports.numbers import between, percent, probability, scaled
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import legend_of_marks
from reports.ranked_table.rows import interval_text
from reports.sections.data_sources import caveats, mixed_data
from reports.sections.input_ablation import ablated_tables
from reports.sections.metric_tables import NOT_RANKED, measures, other_metrics, parts
from reports.sections.reference_scores import beside_the_ranking
from reports.sections.uses_of_attention import families, family_key, family_title, members

COSTS = (
    ("train_tokens_per_s", 1.0),
    ("train_step_time_ms", 1.0),
    ("decode_step_time_ms", 1.0),
    ("peak_memory_bytes", 1e6),
)
"""Columns and the size of the unit they are printed in."""

FROM_SPEED_CELLS = ("Decode step ↓", "Peak ↓", "FLOPs")

NO_RANKS = (
    "The preset “{preset}” ranks nothing: its budget is too small for a claim. Lines are in the "
    "order of their means, which is no result."
)
HOW_TO_READ = {
    "Scores": (
        "Means over seeds with 95% t intervals. Where such an interval leaves the range of the "
        "metric, the least and the greatest seed are printed instead, as 0.95–1.00 (3 "
        "seeds). A variant with fewer seeds is marked. One seed has no interval and no rank."
    ),
    "Ranks": (
        "Lines are in the order of their means; of equal means the baseline is first, then what "
        "has fewer parameters. Lines of one rank are tied (marked =): no two of them differ "
        "significantly after Holm's correction over all pairs. The first rank is set off, without "
        "those of which no seed has learned. A line on a later rank may still be tied with the "
        "best, and is then marked so. A test with three seeds has little power, so a tie does not "
        "show that two variants are equal."
    ),
    "Differences": "To the baseline on the same seeds of the test, with Holm-adjusted p values.",
    "Missing values": LEGEND,
    "No interval": NO_SPREAD,
    "Times of training": (
        "Means over seeds on one processor. Where they are fewer than the seeds, n says how many; "
        "fewer than three have no interval."
    ),
}
ONE_SEED = "One seed each: no interval is known, and nothing is ranked."


def how_to_read_section(folder: RunFolder) -> Section:
    """What the columns, marks and tables of the uses of attention mean."""
    blocks: list[Block] = []
    if not folder.catalog.ranks:
        blocks.append(Paragraph(NO_RANKS.format(preset=folder.catalog.preset), "warning"))
    told = HOW_TO_READ | {"Marks": legend_of_marks(folder.comparisons, folder.certificates)}
    if not folder.catalog.ranks:
        del told["Ranks"]
    told = {head: text for head, text in told.items() if text}
    blocks.append(Bullets(tuple(told.values()), tuple(told)))
    if any(other_metrics(comparison) or parts(comparison) for comparison in folder.comparisons):
        blocks.append(Paragraph(NOT_RANKED))
    return Section(key="how-to-read", title="How to read the tables", blocks=tuple(blocks))


def use_sections(folder: RunFolder) -> list[Section]:
    """The ranked tables: a folded section for each use of attention, or one for all tasks."""
    if not folder.comparisons:
        empty = Paragraph("No quality cell has finished, so there is nothing to compare.")
        return [Section(key="ranked", title="Ranking", blocks=(empty,), group="use of attention")]
    groups = families(folder)
    if not groups:
        title = "Ranking" if folder.catalog.ranks else "Scores, without ranks"
        blocks = tuple(_tables(folder, folder.comparisons))
        return [Section(key="ranked", title=title, blocks=blocks, group="use of attention")]
    found = {need.title: need for need in needs(folder)}
    return [
        Section(
            key=family_key(family),
            title=family_title(family),
            blocks=(members(folder, group), *_tables(folder, group), *ablated_tables(group)),
            group="use of attention",
            folded=True,
            synopsis=synopsis(found.get(family)),
        )
        for family, group in groups.items()
    ]


def _tables(folder: RunFolder, found: list[Comparison]) -> list[Block]:
    """Each table, followed by what its scores are read by."""
    table, blocks, mixed = folder.ranked_lines, list[Block](), mixed_data(folder)
    for comparison in found:
        lines = [
            dict(line) for line in table[table["comparison"] == comparison.key].to_dict("records")
        ]
        if comparison.task in mixed:
            blocks.append(Paragraph(mixed[comparison.task], "warning"))
        blocks.append(_table(folder, comparison, lines))
        blocks += caveats(folder, comparison.task)
        blocks += measures(folder, comparison, [str(line["selector"]) for line in lines])
        first = next(one for one in found if one.task == comparison.task)
        blocks += beside_the_ranking(comparison, published_results=comparison is first)
    return blocks


def _speed_place(folder: RunFolder, comparison: Comparison) -> str:
    """Shape and length behind decode time, memory and FLOPs."""
    places = (where for key, (_, where) in folder.costs.items() if key[:3] == comparison.place)
    return next(places, "no speed cells")


def _table(folder: RunFolder, comparison: Comparison, lines: list[dict[Any, Any]]) -> TableBlock:
    metric = comparison.catalog.metric(comparison.metric)
    columns = _columns(comparison, _speed_place(folder, comparison))
    timed = any(outcome.cell.kind == "speed" for outcome in folder.outcomes)
    # a run that timed nothing needs no empty columns
    kept = [timed or column.title not in FROM_SPEED_CELLS for column in columns]
    rows = tuple(_row(folder, comparison, line, kept) for line in lines)
    single = comparison.most_seeds == 1
    return TableBlock(
        key=f"ranked-{comparison.key.removeprefix('comparison-')}",
        title=f"{comparison.title}: {uncapitalized(metric.title)}{', one seed' if single else ''}",
        columns=tuple(compress(columns, kept)),
        rows=rows,
        notes=(
            *([ONE_SEED] if single and comparison.catalog.ranks else ()),
            *_of_one_processor(comparison),
        ),
        dimmed=tuple(line["selector"] in comparison.red for line in lines),
    )


def _of_one_processor(comparison: Comparison) -> list[str]:
    """Say whose times are shown where cells ran on several processors."""
    others = sorted({name for v in comparison.variants for name in comparison.elsewhere(v)})
    if not others:
        return []
    here, there = (
        " and ".join(name or "an unknown processor" for name in names)
        for names in ([comparison.processor], others)
    )
    return [
        f"Times of training are of the cells that ran on {here}; others ran on {there}. Scores are "
        "of all."
    ]


def _columns(comparison: Comparison, where: str) -> tuple[Column, ...]:
    metric = comparison.catalog.metric(comparison.metric)
    timed = f"Median of rounds with 10% and 90% quantiles, {where}."
    seeds = "Mean over seeds with its 95% t interval."
    exact = f"Counted once, {where}; exact, so without interval."
    score = Column(
        title=metric.arrow, unit=metric.unit, numeric=True, better=metric.better, help=seeds
    )
    return (
        Column(title="Rank", numeric=True, help="= marks a tie."),
        Column(title="Variant"),
        score,
        Column(title="To baseline", unit=metric.unit, numeric=True, better=metric.better),
        Column(title="p", unit="Holm", numeric=True, help="Of no difference to the baseline."),
        Column(title="Training ↑", unit="tokens/s", numeric=True, better="higher", help=seeds),
        Column(title="Step ↓", unit="ms", numeric=True, help=seeds),
        Column(title="Decode step ↓", unit="ms", numeric=True, help=timed),
        Column(title="Peak ↓", unit="MB", numeric=True, help=exact),
        Column(
            title="Parameters",
            unit="to baseline",
            numeric=True,
            help="All trained numbers of the model, and how many more than the baseline has.",
        ),
        Column(title="FLOPs", unit="forward", numeric=True, help=exact),
        Column(title="Seeds", numeric=True, help="Leads to the commands that reproduce them."),
    )


def _row(
    folder: RunFolder,
    comparison: Comparison,
    line: dict[Any, Any],
    kept: Sequence[bool],
) -> tuple[TableCell, ...]:
    """Fields of the columns that are kept."""
    variant = str(line["selector"])
    why = why_no_score(folder, comparison, variant)
    if line["seeds"] == 1 < comparison.most_seeds:
        why = f"{why} {line['variant']} has one seed, so no interval is known.".strip()
    if variant in comparison.means and comparison.means[variant].without_spread:
        why = f"{why} {NO_SPREAD}".strip()
    if math.isnan(line["score"]):
        score = dash(why or f"{line['variant']} has no score.")
    else:
        text = interval_text(line, "score")
        best = variant in {leader.variant for leader in comparison.leading}
        help_ = why or ""
        score = TableCell(text=text, sort=line["score"], help=help_, best=best)
    cells = comparison.seeds(variant)
    name = TableCell(
        text=str(line["variant"]),
        href=comparison.catalog.url(variant),
        marks=tuple(mark for mark in str(line["marks"]).split(", ") if mark),
    )
    p_value = TableCell(text=probability(line["p_adjusted"]), sort=_sort(line, "p_adjusted"))
    anchor = f"#{folder.by_id[cells[0]].anchor}"
    made: tuple[Callable[[], TableCell], ...] = (
        lambda: _rank_entry(comparison, line),
        lambda: name,
        lambda: score,
        lambda: _difference(comparison, line),
        lambda: p_value,
        *(partial(_cost, folder, comparison, line, cost) for cost in COSTS),
        lambda: _parameters(comparison, line),
        lambda: _flops(folder, comparison, line),
        lambda: TableCell(text=_counted(line["seeds"], cells), sort=line["seeds"], href=anchor),
    )
    return tuple(make() for make in compress(made, kept))


def _counted(scored: int, cells: Sequence[str]) -> str:
    """Seeds with a score, and those asked where it is fewer."""
    return str(scored) if scored == len(cells) else f"{scored} of {len(cells)}"


def _rank_entry(comparison: Comparison, line: dict[Any, Any]) -> TableCell:
    if not math.isnan(line["rank"]):
        ranks = [ranked.rank for ranked in comparison.ranking]
        tie = "=" if ranks.count(int(line["rank"])) > 1 else ""
        return TableCell(text=f"{int(line['rank'])}{tie}", sort=line["rank"])
    if str(line["selector"]) in comparison.red:
        reasons = " ".join(comparison.red[str(line["selector"])])
        return dash(f"{line['variant']} is not ranked, its certificate is red: {reasons}")
    return TableCell(text=NO_VALUE, sort="")


def _difference(comparison: Comparison, line: dict[Any, Any]) -> TableCell:
    if line["selector"] == comparison.baseline:
        return TableCell(text="baseline", sort=0.0)
    if math.isnan(line["difference"]):
        return TableCell(text=NO_VALUE, sort="")
    found = comparison.compared[str(line["selector"])].difference
    help_ = NO_SPREAD if found is not None and found.without_spread else ""
    text = interval_text(line, "difference", signed=True)
    return TableCell(text=text, sort=line["difference"], help=help_)


def _cost(
    folder: RunFolder,
    comparison: Comparison,
    line: dict[Any, Any],
    cost: tuple[str, float],
) -> TableCell:
    name, unit = cost
    if not math.isnan(line[name]):
        if name.startswith("decode_step"):
            # Timings of speed cells have quantiles, which are no interval of an estimate.
            text = between(*(line[f"{name}{end}"] / unit for end in ("", "_low", "_high")))
        else:
            text = interval_text(line, name, unit)
        return TableCell(text=text, sort=line[name])
    return _cost_hole(folder, comparison, line, name)


def _cost_hole(
    folder: RunFolder,
    comparison: Comparison,
    line: dict[Any, Any],
    name: str,
) -> TableCell:
    variant = str(line["selector"])
    if name.startswith("train_") and variant not in comparison.red:
        why = why_no_score(folder, comparison, variant)
        if not why and comparison.elsewhere(variant):
            where = " and ".join(comparison.elsewhere(variant))
            why = f"{line['variant']} ran on {where}, the others on {comparison.processor}."
        return dash(why or f"{line['variant']}: its cells stored no {name}.")
    return dash(why_no_speed(folder, comparison, variant))


def _parameters(comparison: Comparison, line: dict[Any, Any]) -> TableCell:
    count, ratio = line["parameters_count"], line["parameters_ratio"]
    if math.isnan(count):
        return dash(f"{line['variant']}: its cells stored no parameters_count.")
    same = line["selector"] == comparison.catalog.baseline or math.isnan(ratio)
    text = scaled(count) if same else f"{scaled(count)} ({percent(ratio)})"
    return TableCell(text=text, sort=count)


def _flops(folder: RunFolder, comparison: Comparison, line: dict[Any, Any]) -> TableCell:
    name = "forward_flops_analytic_count"
    if not math.isnan(line[name]):
        return TableCell(text=scaled(line[name]), sort=line[name])
    return _cost_hole(folder, comparison, line, name)


def _sort(line: dict[Any, Any], name: str) -> float | str:
    return "" if math.isnan(line[name]) else float(line[name])
