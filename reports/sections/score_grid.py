"""Scores of all variants on all tasks at a glance."""

from reports.blocks import Block, Column, Paragraph, Section, TableBlock, TableCell
from reports.folder import RunFolder
from reports.missing_values import dash, why_no_score


def score_grid_section(folder: RunFolder) -> Section | None:
    """One line per variant, one column per comparison; None below two comparisons."""
    if len(folder.comparisons) < 2:
        return None
    variants = sorted({name for comparison in folder.comparisons for name in comparison.variants})
    lines = [(name, _line(folder, name)) for name in variants]
    lines.sort(key=lambda line: (_mean_rank(folder, line[0]), line[0]))
    red = {name for comparison in folder.comparisons for name in comparison.red}
    columns = [Column(title="Variant")]
    for comparison in folder.comparisons:
        metric = comparison.ranked_by
        columns.append(
            Column(
                title=comparison.title,
                unit=metric.arrow.lower() + (f", {metric.unit}" if metric.unit else ""),
                numeric=True,
                better=metric.better,
            )
        )
    table = TableBlock(
        key="overview-table",
        title="Mean test score with 95% t interval over seeds",
        columns=tuple(columns),
        rows=tuple(cells for _, cells in lines),
        dimmed=tuple(name in red for name, _ in lines),
    )
    blocks: list[Block] = [table]
    if folder.catalog.ranks:
        blocks.insert(
            0,
            Paragraph(
                "Scores in bold are tied with the best of their column. Where a t interval would "
                "leave the range of the metric, the lowest and the highest seed follow "
                "the mean. Lines are in the order of the mean rank, which is not a test."
            ),
        )
    return Section(key="overview", title="Scores of all variants", blocks=tuple(blocks))


def _line(folder: RunFolder, variant: str) -> tuple[TableCell, ...]:
    catalog = folder.catalog
    found = {
        "baseline": variant == catalog.baseline,
        "control": catalog.variant(variant).is_control,
        "red certificate": any(variant in comparison.red for comparison in folder.comparisons),
        "decoder differs": catalog.variant(variant).decoder_differs,
        "search differs": catalog.variant(variant).search_differs,
    }
    marks = tuple(text for text, holds in found.items() if holds)
    entries = [TableCell(text=catalog.label(variant), marks=marks)]
    for comparison in folder.comparisons:
        mean = comparison.means.get(variant)
        asked = variant in comparison.variants
        why = why_no_score(folder, comparison, variant) if asked else ""
        if mean is None:
            entries.append(dash(why or "This variant was not asked for on this task."))
            continue
        leads = any(line.variant == variant for line in comparison.leading)
        entries.append(
            TableCell(
                text=comparison.score_text(variant),
                sort=mean.estimate,
                best=leads,
                help=why or "",
            )
        )
    return tuple(entries)


def _mean_rank(folder: RunFolder, variant: str) -> float:
    ranks = [
        line.rank
        for comparison in folder.comparisons
        for line in comparison.ranking
        if line.variant == variant
    ]
    return sum(ranks) / len(ranks) if ranks else 1e9
