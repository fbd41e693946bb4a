"""What variants looked at on a task's own examples, as still figures.

Texts are drawn as maps or, where one output reads a whole document, as its words on shaded
ground; pictures with their places shaded, as figure 3 of Xu et al. (2015); sounds above a row of
weights for each output, as figure 2 of Chan et al. (2016).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from reports.blocks import Figure
from reports.figures.canvas import draw
from reports.figures.maps import Map, attention_maps
from reports.figures.style import COLORS, INK
from reports.folder import RunFolder
from reports.task_examples import MOST_EXAMPLES, ONE_PLACE, Shown, slug, task_examples, titles

MOST_MAPS = 4
MOST_STEPS = 8
"""Of one picture; the page steps through all."""
LINE_LETTERS = 78
SHADE = COLORS[2]
SPREAD = "spreads its weights"
SINGLE = f"puts its weights on one place ({ONE_PLACE:.0%} or more on average)"
SHADING = "The shade of a place is the square root of its weight, so that small weights show."


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


def _which(runs: Sequence[Shown]) -> str:
    """Which variants are drawn, one or two, and by which rule."""
    both = {one.on_one_place for one in runs} == {True, False}
    alike = SINGLE if runs[0].on_one_place else SPREAD
    told = f"the best variant that {SPREAD}, and the best that {SINGLE}."
    if not both and len(runs) > 1:
        told = f"the best two variants, each of which {alike}."
    elif not both:
        told = f"the best variant, which {alike}."
    scored = any(one.scored for one in runs)
    return f"{told} The score beside a name is that of this network." if scored else told


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
    form = "Source across, output down; black is 0, white is 1."
    if any(one.gold for one in runs):
        form = f"{form} Small squares are gold."
    return attention_maps(key, _words(task, runs[0].title, form), maps)


def _shades(weights: Iterable[float]) -> list[float]:
    return [min(1.0, math.sqrt(max(0.0, weight))) for weight in weights]


def _overlay(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    steps = min(MOST_STEPS, max(len(one.weights) for one in runs))
    form = f"One column an output, one row a variant; {_which(runs)} {SHADING}"

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
    from matplotlib.colors import ListedColormap  # noqa: PLC0415  many reports have no picture

    return ListedColormap([SHADE])


def _sound(key: str, task: str, runs: Sequence[Shown]) -> Figure:
    picture = runs[0].picture
    assert picture is not None
    form = (
        "The sound, and below it a row of weights for each output, black is 1; "
        f"{_which(runs)} {SHADING}"
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
    from matplotlib.patches import Rectangle  # noqa: PLC0415  many reports have no picture

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
