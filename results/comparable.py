"""Which cells may be compared: what planners and reports agree on."""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from bench.api.selector import Selector, parse, show_value

SAME = ["task", "slot", "dtype", "device"]
"""Cells that differ here are never compared."""
SETTINGS = ["protocol", "impl", "revisions"]
SPLITS = ["backbone", *SETTINGS]
"""Cells that differ here are compared (a recipe may bring its decoder, a study its learning rate)
and marked, unless one variant has several for a seed. Then the comparison splits by what this
variant has several of, and by nothing else."""


class _Setting(NamedTuple):
    """An option of the protocol, the code, or the revision of one part, where it splits."""

    variants: int
    """How many variants have several values of it for a seed."""
    places: "pd.Series[str]"
    """The comparison that each cell would belong to."""

    @property
    def order(self) -> tuple[int, int]:
        """Sorts the setting that is split by first to the front."""
        return -self.variants, self.places.nunique()


def comparable(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Group cells into comparisons.

    Args:
        cells: A line a cell, with the columns `variant`, `seed`, `SAME` and `SPLITS`.
    """
    for _, group in cells.groupby(SAME, sort=True):
        for alike in _by_backbone(group):
            yield from _by_settings(alike)


def _by_backbone(group: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Split by the backbone where a variant has several for a seed."""
    several = _has_several(group, group["backbone"])
    if not several.any():
        yield group
        return
    places = group["backbone"].map(_places(group, several))
    for _, part in group.groupby(places, sort=True):
        yield part


def _places(group: pd.DataFrame, several: "pd.Series[bool]") -> dict[str, str]:
    """The place of each backbone: itself where a variant has several, else the nearest of these.

    The backbone that is used most has a place of its own, too.

    A recipe brings its own decoder or encoder; it belongs beside those whose network is otherwise
    the same, not into a comparison of its own.

    Args:
        group: The cells.
        several: Which of them are of a variant and a seed with several backbones.
    """
    names = {*map(str, group.loc[several, "backbone"]), usual(group, "backbone")}
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


def _by_settings(group: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Split by one setting after another while a variant has several values of one for a seed.

    What most variants have several of comes first, then what has the fewest values. Where all were
    trained again with more steps, and some with another learning rate, too, the steps tell the two
    trainings apart, and no rate is asked.
    """
    if not group.duplicated(["variant", "seed"]).any():
        yield group
        return
    found = sorted(_settings(group), key=lambda one: one.order)
    if not found:
        yield group
        return
    for _, part in group.groupby(found[0].places, sort=True):
        yield from _by_settings(part)


def _settings(group: pd.DataFrame) -> Iterator[_Setting]:
    """The settings of which a variant has several values for a seed."""
    for column in SETTINGS:
        told = {str(text): _told(column, str(text)) for text in group[column].unique()}
        for name in sorted({name for one in told.values() for name in one}):
            values = group[column].map({text: one.get(name, "") for text, one in told.items()})
            several = _has_several(group, values)
            if several.any():
                variants = group.loc[several, "variant"].nunique()
                yield _Setting(variants, _beside(group, column, values, several))


def _told(column: str, text: str) -> dict[str, str]:
    """What a text says of each setting; what has its default, or its first revision, is left out.

    >>> _told("protocol", "adam[lr=0.01,steps=500]")
    {'': 'adam', '.lr': '0.01', '.steps': '500'}
    >>> _told("revisions", "general:2 transformer_decoder:2")
    {'general': '2', 'transformer_decoder': '2'}
    """
    if column == "revisions":
        parts = [one.partition(":") for one in text.split()]
        return {name: number for name, _, number in parts}
    return _options(parse(text)) if column == "protocol" else {column: text}


def _options(selector: Selector, path: str = "") -> dict[str, str]:
    """The name and every option of a selector, with those of the selectors inside, by its path."""
    found = {path: selector.name}
    for key, value in selector.options.items():
        if isinstance(value, tuple):
            for at, inner in enumerate(value):
                found |= _options(inner, f"{path}.{key}.{at}")
        else:
            found[f"{path}.{key}"] = show_value(value)
    return found


def _beside(
    group: pd.DataFrame, column: str, values: "pd.Series[str]", several: "pd.Series[bool]"
) -> "pd.Series[str]":
    """The place of each cell: its own value where a variant has it beside others, else the usual.

    So a variant with a learning rate of its own stays beside the others where one of them has two.

    Args:
        group: The cells.
        column: What the values were read from.
        values: Those of one setting.
        several: Which cells are of a variant and a seed with several values.
    """
    held = values.isin(values[several])
    places = values.where(held, usual(group.assign(**{column: values})[held], column))
    # in the order of the whole texts
    return places.map(group[column].groupby(values).min())


def _has_several(group: pd.DataFrame, values: "pd.Series[str]") -> "pd.Series[bool]":
    """Which cells are of a variant and a seed with several values."""
    return values.groupby([group["variant"], group["seed"]]).transform("nunique") > 1


def usual(cells: pd.DataFrame, column: str) -> str:
    """The most frequent value of a column, the first by name of several.

    Every variant counts once, however many seeds it has: seeds that are added later to some of
    them must not change what is compared with what.
    """
    once = cells.drop_duplicates(["variant", column])
    return str(once[column].mode().iloc[0])
