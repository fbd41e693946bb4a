"""What variants looked at on a task's own examples, as data and as still figures.

Texts are drawn as maps or, where one output reads a whole document, as its words on shaded
ground; pictures with their places shaded, as figure 3 of Xu et al. (2015); sounds above a row of
weights for each output, as figure 2 of Chan et al. (2016).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from reports.blocks import Figure, clean
from reports.catalog import uncapitalized
from reports.figures.canvas import draw
from reports.figures.maps import Map, attention_maps
from reports.figures.style import COLORS, INK
from reports.folder import RunFolder, StoredOutcome
from reports.numbers import plain
from reports.sections.examples import artifacts_of_one_seed

MOST_EXAMPLES = 3
MOST_VARIANTS = 8
MOST_MAPS = 4
MOST_STEPS = 8
"""Of one picture; the page steps through all."""
LINE_LETTERS = 78
ONE_PLACE = 0.9
"""Mean largest weight from which on one place is read at a time, whether the mechanism is hard or
a soft one that has become so."""
SHADE = COLORS[2]
KINDS = (
    "the best variant that spreads its weights and, where there is one, the best with them on one "
    f"place ({ONE_PLACE:.0%} or more on average; a hard mechanism, or a soft one that became so). "
    "The score beside a name is that of this network."
)
SHADING = "The shade of a place is the square root of its weight, so that small weights show."


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
    uniform = [name for name in names if folder.catalog.flag(name, "uniform_baseline")][:1]
    rest = [name for name in names if name not in uniform]
    return [*rest[: MOST_VARIANTS - len(uniform)], *uniform]


def _score(folder: RunFolder, outcome: StoredOutcome) -> str:
    """Metric and value of the network that an artifact is of."""
    for comparison in folder.comparisons:
        if outcome.record.id in comparison.seeds(outcome.cell.variant):
            value = comparison.scores.get(outcome.cell.variant, {}).get(outcome.cell.seed)
            title = uncapitalized(folder.catalog.metric(comparison.metric).title)
            return "" if value is None else f"{title} {plain(value)}"
    return ""


def read_shown(name: str, entry: Mapping[str, Any], at: int) -> Shown | None:
    """An entry of an artifact, by the name of its variant; None without weights."""
    weights = _matrix(entry.get("weights") or ())
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
        gold=_matrix(entry["gold"]) if entry.get("gold") else None,
        reference=clean(entry.get("reference", "")),
        output=clean(entry.get("output", "")),
        begins=_begins(entry.get("sentences") or ()),
        picture=_picture(entry.get("picture"), len(weights[0])),
    )


def _matrix(rows: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in rows)


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
    return MapPicture(gray=_matrix(entry["gray"]), grid=(rows, columns))


def slug(text: str) -> str:
    """A name that files and pages accept.

    >>> slug("transduction[rule=reverse]")
    'transduction-rule-reverse'
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-") or "task"


def example_figures(folder: RunFolder, *, most: int = MOST_EXAMPLES) -> dict[str, list[Figure]]:
    """Still figures of each task's examples; `example-<task>-<number>`."""
    found: dict[str, list[Figure]] = {}
    used: set[str] = set()
    for task, examples in task_examples(folder).items():
        label = folder.catalog.task_label(task)
        name = slug(label)
        while name in used:
            name += "-2"
        used.add(name)
        for at, title in enumerate(titles(examples)[:most], start=1):
            runs = [one for shown in examples.values() for one in shown if one.title == title]
            figure = example_figure(f"example-{name}-{at}", label, runs)
            found.setdefault(task, []).append(figure)
    return found


def titles(examples: TaskExamples) -> list[str]:
    """Titles of the examples in their order."""
    return [*dict.fromkeys(one.title for shown in examples.values() for one in shown)]


def example_figure(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    """Draw one example of several variants, in the form that fits its source."""
    first = runs[0]
    if first.picture is not None:
        return (_sound if first.picture.is_sound else _overlay)(key, task, two_kinds(runs))
    if len(first.weights) == 1 and len(first.source) > 1:
        return _document(key, task, runs[:MOST_MAPS])
    return _text(key, task, runs[:MOST_MAPS])


def two_kinds(runs: Sequence[Shown]) -> list[Shown]:
    """The best with weights spread and the best with them on one place; else the best two.

    Runs come best first, so that a variant which learned nothing stands beside another one only
    where there is no better one of its kind.
    """
    pictured = [one for one in runs if one.picture is not None]
    spread = [one for one in pictured if not one.on_one_place]
    single = [one for one in pictured if one.on_one_place]
    return [*spread[:1], *single[:1]] if spread and single else pictured[:2]


def _kind(one: Shown) -> str:
    return f"{'one place' if one.on_one_place else 'spread'}: {one.name}"


def _words(task: str, title: str, form: str) -> dict[str, str]:
    return {
        "title": f"{task}: {title}" if title else task,
        "description": f"Weights over one example of the task {task}. {form}",
        "caption": form,
    }


def _text(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    maps = [
        Map(
            title=f"{one.variant}\n{one.scored}" if one.scored else one.variant,
            query=one.said,
            source=one.source,
            weights=one.weights,
            gold=one.gold,
        )
        for one in runs
    ]
    form = "Source across, output down; black is 0, white is 1. Small squares are gold."
    return attention_maps(key, _words(task, runs[0].title, form), maps)


def _shades(weights: Iterable[float]) -> list[float]:
    return [min(1.0, math.sqrt(max(0.0, weight))) for weight in weights]


def _overlay(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    steps = min(MOST_STEPS, max(len(one.weights) for one in runs))
    form = f"One column an output, one row a variant; {KINDS} {SHADING}"

    def paint(figure: Any) -> None:
        grid = figure.subplots(len(runs), steps, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for one, line in zip(runs, grid, strict=True):
            for at, axes in enumerate(line[: len(one.weights)]):
                _places(axes, one, at)
                word = one.said[at] if at < len(one.said) else ""
                # the empty line is room for the name of the variant, which must not widen a panel
                axes.set_title(f"\n{word}", fontsize=8.0)
            line[0].text(
                0.0,
                1.15,
                _kind(one),
                transform=line[0].transAxes,
                fontsize=8.5,
                weight="bold",
                parse_math=False,
                in_layout=False,
            )

    size = (max(3.2, 1.45 * steps), 1.95 * len(runs))
    return draw(key, _words(task, runs[0].title, form), paint, size=size)


def _places(axes: Any, one: Shown, at: int) -> None:
    picture = one.picture
    assert picture is not None
    rows, columns = picture.grid
    shades = _shades(one.weights[at])
    table = [shades[row * columns : (row + 1) * columns] for row in range(rows)]
    box = (0, columns, rows, 0)
    axes.imshow(
        picture.gray,
        cmap="gray",
        vmin=0,
        vmax=1,
        extent=box,
        interpolation="nearest",
        aspect="equal",
        clip_on=False,
    )
    axes.imshow(
        [[0.0] * columns] * rows,
        cmap=_one_color(),
        alpha=[[0.75 * shade for shade in line] for line in table],
        extent=box,
        interpolation="nearest",
        clip_on=False,
    )


def _one_color() -> Any:
    return ListedColormap([SHADE])


def _sound(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    picture = runs[0].picture
    assert picture is not None
    form = (
        f"The sound, and below it a row of weights for each output, black is 1; {KINDS} {SHADING}"
    )
    heights = [1.1, *(0.4 + 0.13 * len(one.weights) for one in runs)]

    def paint(figure: Any) -> None:
        axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        axes[0].imshow(picture.gray, cmap="magma", aspect="auto", clip_on=False)
        axes[0].set_axis_off()
        for one, below in zip(runs, axes[1:], strict=True):
            below.grid(visible=False)
            shades = [_shades(row) for row in one.weights]
            below.imshow(shades, cmap="gray_r", vmin=0, vmax=1, aspect="auto", clip_on=False)
            below.set_title(_kind(one), fontsize=8.0)
            below.set_xticks([])
            below.set_yticks(range(len(one.said)), labels=[word[:12] for word in one.said])
            below.tick_params(length=0, labelsize=6.5, pad=2)

    return draw(key, _words(task, runs[0].title, form), paint, size=(6.4, sum(heights) + 0.4))


def _document(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    lines = [_lines(one) for one in runs]
    heights = [len(found) + 1.3 for found in lines]
    form = f"Each word of the source on shaded ground, one sentence a line. {SHADING}"

    def paint(figure: Any) -> None:
        axes = figure.subplots(len(runs), 1, squeeze=False, height_ratios=heights)[:, 0]
        for one, found, here in zip(runs, lines, axes, strict=True):
            _shaded(here, one, found)

    size = (7.6, 0.4 + 0.2 * sum(heights))
    return draw(key, _words(task, runs[0].title, form), paint, size=size)


def _lines(one: Shown) -> list[list[int]]:
    """Places of the words on each line: a sentence, folded where it is long."""
    lines: list[list[int]] = [[]]
    width = 0
    for at, word in enumerate(one.source):
        ended = not one.begins and at > 0 and one.source[at - 1] in (".", "!", "?")
        if at in one.begins or ended or (at > 0 and width + len(word) + 1 > LINE_LETTERS):
            lines.append([])
            width = 0
        lines[-1].append(at)
        width += len(word) + 1
    return lines


def _shaded(axes: Any, one: Shown, lines: Sequence[Sequence[int]]) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, LINE_LETTERS + 2)
    axes.set_ylim(len(lines), 0)
    says = f": says {one.said[0]}" if one.said else ""
    axes.set_title(f"{one.name}{says}", fontsize=8.5)
    shades = _shades(one.weights[0])
    for row, line in enumerate(lines):
        left = 0.0
        for at in line:
            width = len(one.source[at]) + 0.9
            box: dict[str, Any] = {
                "facecolor": SHADE,
                "alpha": 0.8 * shades[at],
                "linewidth": 0,
                "clip_on": False,
            }
            axes.add_patch(Rectangle((left, row + 0.08), width - 0.15, 0.84, **box))
            axes.text(
                left + width / 2,
                row + 0.5,
                one.source[at],
                ha="center",
                va="center",
                fontsize=7.5,
                color=INK,
                parse_math=False,
            )
            left += width
