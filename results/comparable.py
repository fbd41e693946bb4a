"""Which cells may be compared: what planners and reports agree on."""

from collections.abc import Iterator

import pandas as pd

from bench.api.selector import Selector, parse

SAME = ["task", "slot", "dtype", "device"]
"""Cells that differ here are never compared."""
SPLITS = ["backbone", "protocol", "impl", "revisions"]
"""Cells that differ here are compared (a recipe may bring its decoder, a study its learning rate)
and marked, unless one variant has several; then the comparison splits."""


def comparable(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Group cells into comparisons.

    Args:
        cells: A line a cell, with the columns `variant`, `seed`, `SAME` and `SPLITS`.
    """
    for _, group in cells.groupby(SAME, sort=True):
        yield from _split(group, SPLITS)


def _split(group: pd.DataFrame, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Split by one column after another while a variant has two cells for one seed."""
    if not columns or not _doubled(group):
        yield group
        return
    key = group[columns[0]]
    if columns[0] == "backbone":
        key = key.map(_places(group))
    for _, part in group.groupby(key, sort=True):
        yield from _split(part, columns[1:])


def _places(group: pd.DataFrame) -> dict[str, str]:
    """The place of each backbone: itself where a variant has several, else the nearest of these.

    The backbone that is used most has a place of its own, too.

    A recipe brings its own decoder or encoder; it belongs beside those whose network is otherwise
    the same, not into a comparison of its own.
    """
    doubled = group[group.duplicated(["variant", "seed"], keep=False)]
    names = {*map(str, doubled["backbone"]), usual(group, "backbone")}
    hosts = {name: parse(name) for name in sorted(names)}
    found = {}
    for name in map(str, group["backbone"].unique()):
        mine = parse(name)
        alike = [host for host, other in hosts.items() if other.name == mine.name]
        found[name] = min(alike, key=lambda host: options_between(mine, hosts[host]), default=name)
    return found


def options_between(one: Selector, other: Selector) -> int:
    """How many options of two networks differ."""
    keys = {*one.options, *other.options}
    return sum(one.options.get(key) != other.options.get(key) for key in keys)


def _doubled(group: pd.DataFrame) -> bool:
    return bool(group.duplicated(["variant", "seed"]).any())


def usual(cells: pd.DataFrame, column: str) -> str:
    """The most frequent value of a column, the first by name of several.

    Every variant counts once, however many seeds it has: seeds that are added later to some of
    them must not change what is compared with what.
    """
    once = cells.drop_duplicates(["variant", column])
    return str(once[column].mode().iloc[0])
