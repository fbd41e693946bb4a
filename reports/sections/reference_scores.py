"""What scores are read by: non-neural baselines, and published numbers. Neither is ranked."""

from typing import Any

import pandas as pd

from bench.api.comparison import PublishedResult
from reports.blocks import Block, Column, Paragraph, TableBlock, TableCell, clean, safe_url
from reports.folder import RunFolder
from reports.numbers import Seen, counted, digits_for, plain, with_interval
from reports.ranked_table.comparison import Comparison
from results.statistics import Interval, t_interval

CEILING = (
    "{name} is the rule by which the data are made, which nothing can beat, so it is a ceiling and "
    "not a competitor."
)
NOT_OURS = "These numbers are not comparable with the table above, and they are not ranked."


def beside_the_ranking(comparison: Comparison, *, published_results: bool) -> list[Block]:
    """Sentence about non-neural baselines, and the table of published numbers."""
    blocks: list[Block] = []
    told = without_sentence(comparison)
    if told:
        blocks.append(Paragraph(told))
    if published_results and comparison.catalog.published_results(comparison.task):
        blocks.append(_published_results(comparison))
    return blocks


def without_sentence(comparison: Comparison) -> str:
    """Values of non-neural baselines, and how many contenders are better in every seed."""
    levels = without_levels(comparison)
    if not levels:
        return ""
    values = ", ".join(f"{name} {level_text(comparison, name)}" for name in levels)
    unit = comparison.ranked_by.unit
    told = f"Non-neural baseline: {values}{f' ({unit})' if unit else ''}."
    if comparison.better == "none" or not comparison.contenders:
        return told
    if comparison.ceiling:
        return f"{told} {CEILING.format(name=comparison.ceiling)}"
    best, fair = next(iter(levels)), comparison.contenders
    return f"{told} Better than {best} in every seed: {_of(comparison, fair)}."


def _of(comparison: Comparison, fair: list[str]) -> str:
    won = len(comparison.beats_the_rest)
    return f"{won} of {counted(len(fair), 'variant')}"


def without_levels(comparison: Comparison) -> dict[str, Interval]:
    """Mean over seeds of non-neural baselines, best first."""
    return {name: t_interval([*values.values()]) for name, values in comparison.without.items()}


def level_text(comparison: Comparison, name: str) -> str:
    """Mean of a non-neural baseline, which only differs between seeds where the data do."""
    values = [*comparison.without[name].values()]
    level, limits = t_interval(values), comparison.ranked_by.limits
    if digits_for(level.half_width) > 4:
        return plain(level.estimate)
    return with_interval(level.estimate, level.low, level.high, limits=limits, seen=Seen.of(values))


def _published_results(comparison: Comparison) -> TableBlock:
    known = comparison.catalog
    published_results = known.published_results(comparison.task)
    rows = [
        _published_result(known.metric, published_result) for published_result in published_results
    ]
    heads = ("What", "Metric", "Published in", "Where", "How it differs")
    columns = [Column(title=head) for head in heads]
    columns.insert(2, Column(title="Value", numeric=True))
    if any(published_result.about for published_result in published_results):
        columns.append(Column(title="Options that it is about"))
        pairs = zip(rows, published_results, strict=True)
        rows = [
            (*row, TableCell(text=clean(published_result.about))) for row, published_result in pairs
        ]
    return TableBlock(
        key=f"published-{comparison.key.removeprefix('comparison-')}",
        title=f"Published numbers: {known.task_label(comparison.task)}",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(NOT_OURS,),
    )


def _published_result(metric_of: Any, published_result: PublishedResult) -> tuple[TableCell, ...]:
    metric = metric_of(published_result.metric)
    value = published_result.value
    return (
        TableCell(text=clean(published_result.what)),
        TableCell(text=metric.axis),
        TableCell(text=plain(value), sort=value),
        TableCell(
            text=clean(published_result.text),
            href=safe_url(published_result.url),
        ),
        TableCell(text=clean(published_result.where)),
        TableCell(text=clean(published_result.differs)),
    )


def baselines_table(folder: RunFolder) -> pd.DataFrame:
    """One line for each comparison and each non-neural baseline."""
    return pd.DataFrame(
        {
            "comparison": comparison.key,
            "task": comparison.title,
            "baseline": name,
            "metric": comparison.metric,
            "unit": comparison.ranked_by.unit,
            "value": level.estimate,
            "value_low": level.low,
            "value_high": level.high,
            "seeds": level.count,
            "contenders": len(comparison.contenders),
            "contenders_better_in_every_seed": len(comparison.beats_the_rest) if first else None,
        }
        for comparison in folder.comparisons
        for name, level in without_levels(comparison).items()
        for first in (name == next(iter(comparison.without)),)
    )


def published_results_table(folder: RunFolder) -> pd.DataFrame:
    """One line for each published number."""
    known = folder.catalog
    return pd.DataFrame(
        {
            "task": known.task_label(task),
            **{key: clean(getattr(published_result, key)) for key in ("what", "metric")},
            "value": published_result.value,
            **{
                key: clean(getattr(published_result, key))
                for key in ("text", "url", "where", "differs", "about")
            },
        }
        for task in dict.fromkeys(comparison.task for comparison in folder.comparisons)
        for published_result in known.published_results(task)
    )
