"""The ranked table of each comparison, as blocks."""

from typing import Any

from bench.api.headline import Kind, is_made
from reports.blocks import Block, Bullets, Paragraph, Section, TableBlock
from reports.catalog import SHORT_UNITS, capitalized, uncapitalized
from reports.choices import synopsis
from reports.folder import RunFolder
from reports.missing_values import LEGEND, NO_SPREAD
from reports.needs import needs
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.headline import about_the_headline
from reports.ranked_table.marks import legend_of_marks
from reports.sections.data_sources import caveats, mixed_data
from reports.sections.input_ablation import ablated_tables
from reports.sections.metric_tables import NOT_RANKED, measures, other_metrics, parts
from reports.sections.mixed_environments import mixed_environments, places_of
from reports.sections.ranking_cells import RankedLine
from reports.sections.ranking_columns import RANKED_COLUMNS, head_of
from reports.sections.reference_scores import beside_the_ranking
from reports.sections.uses_of_attention import families, family_key, members

NO_RANKS = (
    "The preset “{preset}” ranks nothing, because its budget is too small for a claim. Lines are "
    "in the order of their means. This order is not a result."
)
HOW_TO_READ = {
    "Scores": (
        "Means over seeds with 95% t intervals. Where an interval would leave the range of the "
        "metric, the lowest and the highest seed follow the mean, as 0.98 (0.95–1.00, 3 "
        "seeds). A number without bounds is the mean of equal scores, or one seed. A variant with "
        "fewer seeds is marked. One seed has no interval and no rank."
    ),
    "Verdicts": (
        "What is tested is fixed before a run: each contender against the baseline and against "
        "uniform attention. The test is a t test on common seeds whose variance borrows from the "
        "other variants of the table, after Holm's correction over these hypotheses. Better and "
        "worse are significant at 5%. Equivalent means that the difference is shown to lie within "
        "the margin of the metric. Equivalent at the ceiling, or at chance, means that both "
        "scores are within 1% of the best possible one, or of chance, so that the task does not "
        "separate the two. Undecided is neither, and is followed by the number of seeds that would "
        "probably decide, up to 200. "
        "Controls are not tested, except for uniform attention, and have a dash."
    ),
    "Ranks": (
        "Lines are in the order of their means. Of equal means the baseline is first, then the "
        "variant with fewer parameters. Lines of one rank are tied and marked =: none of them is "
        "significantly worse than one above it by the same test, after Holm's correction over all "
        "pairs. The first rank is in bold, except for variants of which no seed has learned, or "
        "that are worse than a baseline of this rank by the planned test. A line on a later rank "
        "may still be tied with the best, and is then marked so. A tie does not show that two "
        "variants are equal. The correction over all pairs is the stricter one, so a line may be "
        "tied with the baseline here and be better or worse by the planned test; it is marked then."
    ),
    "Differences": (
        "To the baseline on the same seeds, with 95% intervals. They use the spread of the other "
        "variants too, so they may be narrower or wider than those of the scores. Where some "
        "variants learn in some seeds only, all intervals of differences in the table are wider. "
        "An interval is that of one difference alone; p is corrected and decides."
    ),
    "Missing values": LEGEND,
    "No interval": NO_SPREAD,
    "Times of training": (
        "Means over the seeds that ran on one processor. Where these are not all seeds, n says how "
        "many they are. Fewer than three have no interval."
    ),
}
MADE: dict[Kind, str] = {
    "area_under_curve": (
        "Along training: mean of the validation score over the steps of training (area under the "
        "learning curve). What learns sooner scores better."
    ),
    "beyond_training": "Beyond training: score of inputs that are longer than any of training. "
    "Rates and the checkpoint were chosen on validation, which has such inputs, too, so that these "
    "scores are optimistic.",
}
"""What is said of a metric that is made of another one."""
ONE_SEED = "One seed each: no interval is known, and nothing is ranked."


def how_to_read_section(folder: RunFolder) -> Section:
    """What the columns, marks and tables of the uses of attention mean."""
    blocks: list[Block] = []
    if not folder.catalog.ranks:
        blocks.append(Paragraph(NO_RANKS.format(preset=folder.catalog.preset), "warning"))
    # tables of timings have words of their own
    told = dict(HOW_TO_READ) if folder.comparisons else {"Missing values": LEGEND}
    told["Marks"] = legend_of_marks(folder.headlines.values(), folder.certificates)
    if not folder.catalog.ranks:
        told |= {"Ranks": "", "Verdicts": ""}
    told["Metrics"] = _made_metrics(folder)
    told["Units"] = _long_units(folder)
    told = {head: text for head, text in told.items() if text}
    blocks.append(Bullets(tuple(told.values()), tuple(told)))
    if any(other_metrics(comparison) or parts(comparison) for comparison in folder.comparisons):
        blocks.append(Paragraph(NOT_RANKED))
    return Section(key="how-to-read", title="How to read the tables", blocks=tuple(blocks))


def _made_metrics(folder: RunFolder) -> str:
    """What metrics are that are made of others; empty where none ranks."""
    kinds = {kind for one in folder.comparisons for kind in MADE if is_made(one.metric, kind)}
    return " ".join(text for kind, text in MADE.items() if kind in kinds)


def _long_units(folder: RunFolder) -> str:
    """What the short units of this run stand for; empty where it has none."""
    units = {metric.unit for metric in folder.catalog.metrics.values()}
    said = [f"{short}: {long}" for long, short in SHORT_UNITS.items() if long in units]
    return f"{'; '.join(said)}." if said else ""


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
            title=capitalized(family),
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
        shown = folder.headlines[comparison.key]
        lines = [
            dict(line) for line in table[table["comparison"] == comparison.key].to_dict("records")
        ]
        if comparison.task in mixed:
            blocks.append(Paragraph(mixed[comparison.task], "warning"))
        blocks.append(_table(folder, shown, lines))
        told = about_the_headline(shown)
        blocks += [Paragraph(told)] if told else []
        blocks += caveats(folder, comparison)
        blocks += measures(folder, comparison, [str(line["selector"]) for line in lines])
        first = next(one for one in found if one.task == comparison.task)
        blocks += beside_the_ranking(comparison, published_results=comparison is first)
    return blocks


def _speed_place(folder: RunFolder, comparison: Comparison) -> str:
    """Shape and length behind decode time, memory and FLOPs."""
    places = (where for key, (_, where) in folder.costs.items() if key[:-2] == comparison.place)
    return next(places, "no speed cells")


def _table(folder: RunFolder, comparison: Comparison, lines: list[dict[Any, Any]]) -> TableBlock:
    metric = comparison.ranked_by
    timed = any(outcome.cell.kind == "speed" for outcome in folder.outcomes)
    # a run that timed nothing needs no empty columns
    kept = [
        column
        for column in RANKED_COLUMNS
        if (timed or not column.from_speed_cells) and (comparison.plain or not column.of_plain)
    ]
    where = _speed_place(folder, comparison)
    ranked = [RankedLine(folder, comparison, line) for line in lines]
    rows = tuple(tuple(column.cell(one) for column in kept) for one in ranked)
    single = comparison.most_seeds == 1
    return TableBlock(
        key=f"ranked-{comparison.key.removeprefix('comparison-')}",
        title=(
            f"{comparison.title}{places_of(folder, comparison)}: {uncapitalized(metric.title)}"
            f"{', one seed' if single else ''}"
        ),
        columns=tuple(head_of(column, comparison, where) for column in kept),
        rows=rows,
        notes=(
            *([ONE_SEED] if single and comparison.catalog.ranks else ()),
            *_of_one_processor(comparison),
            *mixed_environments(folder, comparison),
        ),
        dimmed=tuple(line["selector"] in comparison.red for line in lines),
    )


def _of_one_processor(comparison: Comparison) -> list[str]:
    """Say whose times are shown where cells ran on several processors."""
    others = sorted({name for v in comparison.variants for name in comparison.cells.elsewhere(v)})
    if not others:
        return []
    here, there = (
        " and ".join(name or "an unknown processor" for name in names)
        for names in ([comparison.cells.processor], others)
    )
    return [
        f"Times of training are those of cells that ran on {here}. Others ran on {there}. Scores "
        "are of all cells."
    ]
