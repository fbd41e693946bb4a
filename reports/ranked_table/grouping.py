"""Which cells may be compared: they are grouped into comparisons, each with a title."""

from collections.abc import Iterator, Sequence

import pandas as pd

from bench.api.selector import Selector, parse
from reports.catalog import NO_CERTIFICATES, Catalog, Certificates, red_reasons
from reports.ranked_table.comparison import Comparison
from results.comparable import SAME, SPLITS, comparable, usual

PIPELINE = " (pipeline check)"


def comparisons(
    frame: pd.DataFrame,
    catalog: Catalog,
    certificates: Certificates = NO_CERTIFICATES,
) -> list[Comparison]:
    """Group the quality cells of a run.

    The title of one that is no evidence says so.
    """
    every = frame[frame["kind"] == "quality"]
    rows = every[every["baseline"] == ""]
    # what is compared is a question about cells, which are few beside their rows
    cells = rows.drop_duplicates("cell")[["cell", "variant", "seed", *SAME, *SPLITS]]
    red = {str(name): red_reasons(certificates, str(name)) for name in cells["variant"].unique()}
    groups = list(comparable(cells))
    place = {cell: at for at, group in enumerate(groups) for cell in group["cell"]}
    rows_of = dict(iter(rows.groupby(rows["cell"].map(place), sort=False)))
    aside = every[(every["baseline"] != "") & (every["split"] == "test")]
    aside = aside[aside["status"] == "ok"].sort_values("finished", kind="stable")
    tasks = [str(group["task"].iloc[0]) for group in groups]
    names = [catalog.task_label(task) for task in tasks]
    checked = [
        PIPELINE if catalog.pipeline_check(task, usual(group, "backbone")) else ""
        for task, group in zip(tasks, groups, strict=True)
    ]
    titles = [
        "".join(parts) for parts in zip(names, checked, distinguished(groups, names), strict=True)
    ]
    found: list[Comparison] = []
    for at, (task, title) in enumerate(zip(tasks, titles, strict=True), start=1):
        mine = rows_of[at - 1]
        found.append(
            Comparison(
                key=f"comparison-{at}",
                title=title,
                task=task,
                metric=catalog.primary(task) or _only_metric(mine),
                frame=mine,
                aside=aside[aside["task"] == task],
                catalog=catalog,
                red={name: reasons for name, reasons in red.items() if reasons},
            )
        )
    return found


def distinguished(groups: Sequence[pd.DataFrame], names: Sequence[str]) -> list[str]:
    """What follows the name of each group, so that no two have the same title.

    Args:
        groups: Cells that are compared, as `comparable` gives them.
        names: A name for each; most groups have one of their own, and nothing follows it.
    """
    columns = [one for one in (*SAME[1:], *SPLITS) if len({x for g in groups for x in g[one]}) > 1]
    found: list[str] = []
    for at, (name, group) in enumerate(zip(names, groups, strict=True), start=1):
        siblings = [one for other, one in zip(names, groups, strict=True) if other == name]
        more = ""
        if len(siblings) > 1:
            parts = ", ".join(_apart(group, siblings, columns))
            more = f" ({parts})" if parts else f" ({at})"
            if (name, more) in zip(names, found, strict=False):
                more += f" ({at})"
        found.append(more)
    return found


def _apart(group: pd.DataFrame, siblings: list[pd.DataFrame], columns: list[str]) -> Iterator[str]:
    """What tells a comparison from the others of its task, in as few words as do."""
    told = False
    for column in columns:
        if column == "revisions" and told:
            return
        value = _single(group, column)
        others = {other for one in siblings if (other := _single(one, column))}
        if value and others - {value}:
            told = True
            alike = [one for one in siblings if _single(one, "slot") == _single(group, "slot")]
            beside = {_single(one, column) for one in alike} - {value, ""}
            shown = value if "[" not in value else _differing(value, others - {value})
            yield shown or ", ".join(_usual_options(value, beside))


def _single(group: pd.DataFrame, column: str) -> str:
    """What tells this comparison from others: the value that all of its cells share, or nothing.

    Backbones may differ within a comparison; it is named by the one that is used most.
    """
    if column == "backbone":
        return usual(group, column)
    return str(group[column].iloc[0]) if group[column].nunique() == 1 else ""


def _differing(value: str, others: set[str]) -> str:
    """A selector with those options alone that differ from the others'; `encoder=rnn[cell=gru]`."""
    mine = parse(value)
    theirs = [other for one in others if (other := parse(one)).name == mine.name]
    shown = [mine.name] if len(theirs) < len(others) else []
    for key, chosen in mine.options.items():
        if all(other.options.get(key) == chosen for other in theirs):
            continue
        if isinstance(chosen, tuple):
            rivals = [one for other in theirs for one in _selectors(other.options.get(key))]
            shown.append(f"{key}={'+'.join(_told(one, rivals) for one in chosen)}")
        else:
            shown.append(f"{key}={str(chosen).lower() if isinstance(chosen, bool) else chosen}")
    return ", ".join(shown)


def _usual_options(value: str, others: set[str]) -> list[str]:
    """Options that others chose and a selector leaves as they are, where nothing else differs."""
    mine = parse(value).options
    theirs = dict.fromkeys(key for one in sorted(others) for key in parse(one).options)
    return [f"default {key}" for key in theirs if key not in mine]


def _selectors(value: object) -> tuple[Selector, ...]:
    return value if isinstance(value, tuple) else ()


def _told(one: Selector, rivals: list[Selector]) -> str:
    """The name of a component, with what tells it from others of that name."""
    alike = {other.show() for other in rivals if other.name == one.name} - {one.show()}
    shown = _differing(one.show(), alike) if alike else ""
    return f"{one.name}[{shown}]" if shown else one.name


def _only_metric(group: pd.DataFrame) -> str:
    """A task that the catalog does not know is ranked by its first test metric, if any."""
    found = group.loc[(group["split"] == "test") & (group["axis"] == ""), "metric"]
    return str(found.iloc[0]) if len(found) else ""
