"""Kernels at several bandwidths: their weights, what they fit, how wide they are, how they err.

Drawn as Zhang et al., 2023, "Dive into deep learning", https://d2l.ai, section 11.2, draw the
Nadaraya-Watson estimate: the wider the kernel, the flatter the curve.
"""

import math
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from bench.api.errors import InvalidSelector
from bench.api.selector import Selector, parse
from reports.blocks import Figure
from reports.figures import Curve, Legend, Panel, panels
from reports.figures.canvas import draw
from reports.figures.style import COLORS, REST, looks
from reports.folder import RunFolder
from reports.numbers import counted
from reports.quality_cost import seen_within
from reports.ranked_table.comparison import Comparison
from reports.sections.examples import artifacts_of_one_seed
from reports.task_examples import Shown, read_shown, slug
from results.statistics import Interval

WIDTH = "band_width"
"""The metric of tasks whose weights are a kernel: full width at half the height."""
PRECISION = "beta"
"""The option that sets a kernel's precision, 1 / bandwidth^2."""
FULL_WIDTH = 2.355
"""Bandwidths between the two points of half height of a Gaussian, 2 sqrt(2 ln 2)."""
LEAST_POINTS = 3
MOST_KERNELS = 5
"""Side by side."""
WIDEST_LABEL = 44
"""Characters of one line of an axis label."""

Sweep = list[tuple[float, str]]
"""Bandwidths from narrow to wide, and the variants that have them."""


def kernel_figures(folder: RunFolder) -> list[Figure]:
    """`band-<task>`, curves against bandwidth, and `kernels-<task>`, weights and fits."""
    found: dict[str, Figure] = {}
    for comparison in folder.comparisons:
        swept = _sweeps(comparison)
        drawn = [_curves(comparison, swept), _kernels(folder, comparison, swept)] if swept else []
        found |= {one.key: one for one in drawn if one is not None and one.key not in found}
    return [*found.values()]


def _sweeps(comparison: Comparison) -> dict[str, Sweep]:
    """Variants that differ in the bandwidth alone, by their name without it."""
    groups: dict[str, Sweep] = {}
    for variant in comparison.stored.final(WIDTH):
        for bandwidth, rest in _bandwidth(variant):
            if variant not in comparison.red:
                groups.setdefault(rest.show(), []).append((bandwidth, variant))
    swept = {
        rest: sorted(points)
        for rest, points in groups.items()
        if len({bandwidth for bandwidth, _ in points}) >= LEAST_POINTS
    }
    names = [parse(rest).name for rest in swept]
    return {
        name if names.count(name) == 1 else rest: points
        for name, (rest, points) in zip(names, swept.items(), strict=True)
    }


def _bandwidth(variant: str) -> Iterator[tuple[float, Selector]]:
    """The bandwidth that a selector asks for, and the selector without it; or nothing."""
    try:
        chosen = parse(variant)
        precision = float(str(chosen.options[PRECISION]))
    except (InvalidSelector, KeyError, ValueError):
        return
    if precision > 0:
        rest = {key: value for key, value in chosen.options.items() if key != PRECISION}
        yield precision**-0.5, Selector(chosen.name, rest)


def _curves(comparison: Comparison, swept: dict[str, Sweep]) -> Figure:
    """Width beside what a Gaussian has, and the errors, of which one is least between."""
    known = comparison.catalog
    unit = comparison.ranked_by.unit
    names = [str(name) for name in comparison.frame["metric"].unique()]
    errors = [name for name in names if known.metric(name).unit == unit and name != WIDTH]
    errors = sorted(errors, key=lambda name: (name != comparison.metric, name))
    width = [_line(kernel, points, _means(comparison, WIDTH)) for kernel, points in swept.items()]
    gaussian = f"{FULL_WIDTH} bandwidths, a Gaussian"
    ends = (width[0].x[0], width[0].x[-1])
    straight = tuple(FULL_WIDTH * x for x in ends)
    width.append(Curve(name=gaussian, x=ends, y=straight, low=straight, high=straight))
    kernel, points = next(iter(swept.items()))
    found = [(name, _means(comparison, name)) for name in errors]
    wrong = [
        _line(known.metric(name).title, points, means)
        for name, means in found
        if all(variant in means for _, variant in points)
    ]
    shown = [
        _panel("Width", known.metric(WIDTH).axis, width, log_y=True),
        _panel(f"Errors of {kernel}", comparison.ranked_by.unit, wrong, log_y=False),
    ]
    seeds = sorted({len(comparison.scores.get(variant, ())) for _, variant in points})
    words = {
        "title": f"Width of the kernel and errors against its bandwidth, {comparison.title}",
        "description": "Two panels over the bandwidth: width at half height, and squared errors.",
        "caption": "The bandwidth is beta^-1/2, in deviations of the inputs. A Gaussian over dense "
        f"points is {FULL_WIDTH} bandwidths wide at half its height. Means over {_counted(seeds)}; "
        "bands are 95% t intervals, or go from the lowest to the highest seed where an interval "
        "would leave the range of the metric.",
    }
    legend = Legend(looks([line.name for line in (*width, *wrong)]), {})
    key = f"band-{slug(known.task_label(comparison.task))}"
    return panels(key, words, shown, legend, columns=2)


def _counted(seeds: Sequence[int]) -> str:
    few, many = seeds[0], seeds[-1]
    return counted(many, "seed") if few == many else f"{few} to {many} seeds"


def _panel(title: str, axis: str, lines: Sequence[Curve], *, log_y: bool) -> Panel:
    return Panel(
        title=title,
        x_label="bandwidth (deviations of the inputs)",
        y_label="\n".join(wrap(axis, WIDEST_LABEL)),
        lines=tuple(lines),
        log_x=True,
        log_y=log_y,
        ticks=tuple(round(x, 3) for x in lines[0].x),
    )


def _means(comparison: Comparison, metric: str) -> dict[str, Interval]:
    found, limits = comparison.stored.final(metric), comparison.catalog.metric(metric).limits
    return {name: seen_within(by_seed.values(), limits) for name, by_seed in found.items()}


def _line(name: str, points: Sweep, means: dict[str, Interval]) -> Curve:
    here = [means[variant] for _, variant in points]
    bounded = [mean if math.isfinite(mean.half_width) else None for mean in here]
    return Curve(
        name=name,
        x=tuple(x for x, _ in points),
        y=tuple(mean.estimate for mean in here),
        low=tuple(b.low if b else m.estimate for b, m in zip(bounded, here, strict=True)),
        high=tuple(b.high if b else m.estimate for b, m in zip(bounded, here, strict=True)),
    )


def _kernels(folder: RunFolder, comparison: Comparison, swept: dict[str, Sweep]) -> Figure | None:
    """Weights over points in order, and what is read off them; None without stored weights."""
    stored = artifacts_of_one_seed(folder, key="examples").get(comparison.task, {})
    points = next(iter(swept.values()))
    found: list[tuple[str, Shown]] = []
    for bandwidth, variant in reversed(points):
        entries = stored[variant][1].get("examples") if variant in stored else None
        one = read_shown(variant, entries[0], 1) if entries else None
        if one is not None and len(one.weights) > 1 and _numbers(one.query):
            found.append((f"bandwidth {bandwidth:.3g}", one))
    if len(found) < LEAST_POINTS:
        return None
    found = found[:MOST_KERNELS]

    def paint(figure: Any) -> None:
        grid = figure.subplots(
            2, len(found), squeeze=False, height_ratios=(1.15, 1.0), sharey="row"
        )
        for at, (title, one) in enumerate(found):
            _map(grid[0, at], title, one, first=at == 0)
            _fit(grid[1, at], one, first=at == 0)

    title = found[0][1].title
    words = {
        "title": f"Kernels of several bandwidths, {comparison.title}: {title}",
        "description": "Above, weights of training points for each point asked; below, answers.",
        "caption": "Above: weights, one column a training point in the order of x, one row a point "
        "that is asked for, light is 0 and each map's largest weight is black. Below: what is "
        "answered (line) and the function without noise (dashed). Bandwidths are in deviations of "
        "the inputs.",
    }
    size = (0.7 + 2.0 * len(found), 4.3)
    return draw(
        f"kernels-{slug(comparison.catalog.task_label(comparison.task))}", words, paint, size=size
    )


def _numbers(words: Sequence[str]) -> list[float]:
    """Words as numbers; empty where one is none."""
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _map(axes: Any, title: str, one: Shown, *, first: bool) -> None:
    asked = _numbers(one.query)
    axes.grid(visible=False)
    axes.imshow(
        one.weights,
        cmap="gray_r",
        vmin=0.0,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0.5, len(one.weights[0]) + 0.5, asked[0], asked[-1]),
    )
    axes.set_title(title)
    axes.set_xlabel("training point")
    if first:
        axes.set_ylabel("x asked for")


def _fit(axes: Any, one: Shown, *, first: bool) -> None:
    asked, answers = _numbers(one.query), _numbers(one.said)
    truth = _numbers(one.reference.split())
    if len(truth) == len(asked):
        axes.plot(asked, truth, color=REST, linestyle="--", linewidth=1.2)
    if len(answers) == len(asked):
        axes.plot(asked, answers, color=COLORS[2], linewidth=1.4)
    axes.set_xlabel("x")
    if first:
        axes.set_ylabel("y")
