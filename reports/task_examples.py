"""What variants looked at on a task's own examples, as data."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reports.blocks import clean
from reports.catalog import uncapitalized
from reports.folder import RunFolder, StoredOutcome
from reports.numbers import plain
from reports.sections.examples import artifacts_of_one_seed, as_matrix

MOST_EXAMPLES = 3
MOST_VARIANTS = 8
ONE_PLACE = 0.9
"""Mean largest weight from which on one place is read at a time, whether the mechanism is hard or
a soft one that has become so."""


@dataclass(frozen=True, kw_only=True)
class MapPicture:
    """Brightness, and the rows and columns of places that weights belong to."""

    gray: tuple[tuple[float, ...], ...]
    grid: tuple[int, int]

    @property
    def is_sound(self) -> bool:
        """Whether its places follow each other in time."""
        return self.grid[0] == 1


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One variant's weights on one example."""

    variant: str
    title: str
    query: tuple[str, ...]
    """Names of what was asked for, one a row of weights."""
    said: tuple[str, ...]
    source: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    gold: tuple[tuple[float, ...], ...] | None
    reference: str
    output: str
    picture: MapPicture | None
    scored: str = ""
    """Score of this very network, as `BLEU 16.7`; one that learned nothing looks at nothing."""
    begins: tuple[int, ...] = ()
    """Places of the source at which another sentence begins, where the task has sentences."""

    @property
    def name(self) -> str:
        """The variant, and its score where it is known."""
        return f"{self.variant}, {self.scored}" if self.scored else self.variant

    @property
    def on_one_place(self) -> bool:
        """Whether nearly all of each row is on one place."""
        return sum(max(row) for row in self.weights) >= ONE_PLACE * len(self.weights)


TaskExamples = dict[str, list[Shown]]
"""Examples by variant, best variant first."""


def task_examples(folder: RunFolder) -> dict[str, TaskExamples]:
    """Examples by task, all of one seed."""
    found = {}
    for task, artifacts in artifacts_of_one_seed(folder, key="examples").items():
        here: TaskExamples = {}
        for variant in _order(folder, task, artifacts):
            outcome, data = artifacts[variant]
            entries = (data.get("examples") or ())[:MOST_EXAMPLES]
            label, score = folder.catalog.label(variant), _score(folder, outcome)
            shown = [read_shown(label, one, at) for at, one in enumerate(entries, start=1)]
            usable = {one.title: replace(one, scored=score) for one in shown if one is not None}
            if usable:
                here[variant] = [*usable.values()]
        if here:
            found[task] = here
    return found


def _order(folder: RunFolder, task: str, found: Iterable[str]) -> list[str]:
    """The best first; a control of the bottom has its place among those shown."""
    mine = [comparison for comparison in folder.comparisons if comparison.task == task]
    ranked = [line.variant for comparison in mine for line in comparison.ranking]
    names = [name for name in dict.fromkeys((*ranked, *sorted(found))) if name in found]
    uniform = [name for name in names if folder.catalog.variant(name).uniform_baseline][:1]
    rest = [name for name in names if name not in uniform]
    return [*rest[: MOST_VARIANTS - len(uniform)], *uniform]


def _score(folder: RunFolder, outcome: StoredOutcome) -> str:
    """Metric and value of the network that an artifact is of."""
    for comparison in folder.comparisons:
        if outcome.record.id in comparison.cells.seeds(outcome.cell.variant):
            value = comparison.scores.get(outcome.cell.variant, {}).get(outcome.cell.seed)
            title = uncapitalized(folder.catalog.metric(comparison.metric).title)
            return "" if value is None else f"{title} {plain(value)}"
    return ""


def read_shown(name: str, entry: Mapping[str, Any], at: int) -> Shown | None:
    """An entry of an artifact, by the name of its variant; None without weights."""
    weights = as_matrix(entry.get("weights") or ())
    if not weights or not weights[0]:
        return None
    words = entry.get("said") or ()
    said = words if len(words) == len(weights) else entry.get("query") or ()
    source = tuple(clean(token) for token in entry.get("source") or ())
    return Shown(
        variant=name,
        title=clean(entry.get("title") or f"example {at}"),
        query=tuple(clean(word) for word in entry.get("query") or ()),
        said=tuple(clean(word) for word in said),
        source=source,
        weights=weights,
        gold=as_matrix(entry["gold"]) if entry.get("gold") else None,
        reference=clean(entry.get("reference", "")),
        output=clean(entry.get("output", "")),
        begins=_begins(entry.get("sentences") or ()),
        picture=_picture(entry.get("picture"), len(weights[0])),
    )


def _begins(sentences: Sequence[int]) -> tuple[int, ...]:
    return tuple(at for at in range(1, len(sentences)) if sentences[at] != sentences[at - 1])


def _picture(entry: Mapping[str, Any] | None, places: int) -> MapPicture | None:
    """None also where states stand for no place of the picture, so that words are shown."""
    if not entry or not entry.get("gray"):
        return None
    rows, columns = (int(count) for count in entry["grid"])
    if rows == 1:
        columns = places  # an encoder may have joined neighbors in time
    if rows * columns != places:
        return None
    return MapPicture(gray=as_matrix(entry["gray"]), grid=(rows, columns))


def slug(text: str) -> str:
    """A name that files and pages accept.

    >>> slug("transduction[rule=reverse]")
    'transduction-rule-reverse'
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-") or "task"


def titles(examples: TaskExamples) -> list[str]:
    """Titles of the examples in their order."""
    return [*dict.fromkeys(one.title for shown in examples.values() for one in shown)]
