"""What scores are read by: what needs no network, and published numbers. Neither is ranked."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.blocks import Block, Column, Entry, Table, Text, clean, safe_url
from reports.contests import Contest
from reports.folder import RunFolder
from reports.numbers import digits_for, plain, with_interval
from results.statistics import Interval, t_interval

NOT_OURS = "They are not comparable with the table above, and take no part in it."


def beside_the_ranking(contest: Contest, *, anchors: bool) -> list[Block]:
    """Sentence about what needs no network, and the table of published numbers."""
    blocks: list[Block] = []
    told = without_sentence(contest)
    if told:
        blocks.append(Text(told))
    if anchors and contest.catalog.anchors(contest.task):
        blocks.append(_anchors(contest))
    return blocks


def without_sentence(contest: Contest) -> str:
    """Values without a network, and how many contenders are better in every seed."""
    levels = without_levels(contest)
    if not levels:
        return ""
    values = ", ".join(f"{name} {level_text(level)}" for name, level in levels.items())
    unit = contest.catalog.metric(contest.metric).unit
    told = f"Without a network: {values}{f' ({unit})' if unit else ''}."
    if contest.better == "none" or not contest.contenders:
        return told
    best, fair = next(iter(levels)), contest.contenders
    return f"{told} Better than {best} in every seed: {_of(contest, fair)}."


def _of(contest: Contest, fair: list[str]) -> str:
    won = len(contest.beats_the_rest)
    return f"{won} of {len(fair)} contender{'s' if len(fair) > 1 else ''}"


def without_levels(contest: Contest) -> dict[str, Interval]:
    """Mean over seeds of what needs no network, best first."""
    return {name: t_interval([*values.values()]) for name, values in contest.without.items()}


def level_text(level: Interval) -> str:
    """A value that only differs between seeds where the data do."""
    if digits_for(level.half_width) > 4:
        return plain(level.estimate)
    return with_interval(level.estimate, level.low, level.high)


def _anchors(contest: Contest) -> Table:
    known = contest.catalog
    anchors = known.anchors(contest.task)
    rows = [_anchor(known.metric, anchor) for anchor in anchors]
    heads = ("What", "Metric", "Published in", "Where", "How it differs")
    columns = [Column(title=head) for head in heads]
    columns.insert(2, Column(title="Value", numeric=True))
    if any(anchor.get("about") for anchor in anchors):
        columns.append(Column(title="Options that it is about"))
        pairs = zip(rows, anchors, strict=True)
        rows = [(*row, Entry(text=clean(anchor.get("about", "")))) for row, anchor in pairs]
    return Table(
        key=f"published-{contest.key.removeprefix('contest-')}",
        title=f"Published numbers: {known.task_label(contest.task)}",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(NOT_OURS,),
    )


def _anchor(metric_of: Any, anchor: Mapping[str, Any]) -> tuple[Entry, ...]:
    metric = metric_of(str(anchor.get("metric", "")))
    value = float(anchor.get("value", float("nan")))
    return (
        Entry(text=clean(anchor.get("what", ""))),
        Entry(text=metric.axis),
        Entry(text=plain(value), sort=value),
        Entry(text=clean(anchor.get("text", "")), href=safe_url(str(anchor.get("url", "")))),
        Entry(text=clean(anchor.get("where", ""))),
        Entry(text=clean(anchor.get("differs", ""))),
    )


def baselines_table(folder: RunFolder) -> pd.DataFrame:
    """One line for each comparison and each thing that needs no network."""
    return pd.DataFrame(
        {
            "contest": contest.key,
            "task": contest.title,
            "baseline": name,
            "metric": contest.metric,
            "unit": contest.catalog.metric(contest.metric).unit,
            "value": level.estimate,
            "value_low": level.low,
            "value_high": level.high,
            "seeds": level.count,
            "contenders": len(contest.contenders),
            "contenders_better_in_every_seed": len(contest.beats_the_rest) if first else None,
        }
        for contest in folder.contests
        for name, level in without_levels(contest).items()
        for first in (name == next(iter(contest.without)),)
    )


def anchors_table(folder: RunFolder) -> pd.DataFrame:
    """One line for each published number."""
    known = folder.catalog
    return pd.DataFrame(
        {
            "task": known.task_label(task),
            **{key: clean(anchor.get(key, "")) for key in ("what", "metric")},
            "value": float(anchor.get("value", float("nan"))),
            **{
                key: clean(anchor.get(key, ""))
                for key in ("text", "url", "where", "differs", "about")
            },
        }
        for task in dict.fromkeys(contest.task for contest in folder.contests)
        for anchor in known.anchors(task)
    )
