"""Figures for documents: showcases of a run, and metrics against an option of the variants."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap

from bench.api.errors import InvalidSelector
from bench.api.selector import Selector, parse
from reports.blocks import Figure
from reports.contests import Contest
from reports.figures import Legend, Line, Panel, panels
from reports.folder import RunFolder, read_folder
from reports.showcases import showcase_figures, slug
from reports.style import looks
from results.frame import final_values, scores
from results.statistics import Interval, t_interval

SWEPT = "band"
"""Part of the names of metrics that are drawn against an option: the bandwidth of a kernel."""
LEAST_POINTS = 3
WIDEST_LABEL = 44
"""Characters of one line of an axis label."""


def write_figures(path: Path, out: Path) -> list[Path]:
    """Draw the showcases of a run, and its metrics of bands against options.

    Args:
        path: A run folder.
        out: Folder to write to; made if missing.

    Returns:
        The files written: `showcase-<task>-<number>.svg` for each example, of the lowest seed, and
        `option-<task>-<metric>.svg` where a variant ran with several values of one option.

    Raises:
        NotARunFolder: The folder has no ledger.
    """
    folder = read_folder(path)
    figures = [one for found in showcase_figures(folder).values() for one in found]
    figures += option_figures(folder)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        written.append(out / f"{figure.key}.svg")
        written[-1].write_text(figure.svg, encoding="utf-8")
    return written


def option_figures(folder: RunFolder) -> list[Figure]:
    """A metric of bands against the one option in which variants of a name differ."""
    figures: dict[str, Figure] = {}
    for contest in folder.contests:
        names = sorted(str(name) for name in contest.frame["metric"].unique() if SWEPT in str(name))
        for metric in names:
            figure = _figure(contest, metric)
            if figure is not None:
                figures.setdefault(figure.key, figure)
    return [*figures.values()]


def _figure(contest: Contest, metric: str) -> Figure | None:
    known = contest.catalog
    found = scores(final_values(contest.frame, metric))
    means = {
        name: t_interval([*by_seed.values()])
        for name, by_seed in found.items()
        if name not in contest.red
    }
    lines = dict(_sweeps(means))
    if not lines:
        return None
    swept = {name for points in lines.values() for _, name in points}
    levels = tuple(
        (mean.estimate, known.label(name)) for name, mean in means.items() if name not in swept
    )
    options = " or ".join(dict.fromkeys(option for _, option in lines))
    title = known.metric(metric)
    panel = Panel(
        title=contest.title,
        x_label=options,
        y_label="\n".join(wrap(title.axis, WIDEST_LABEL)),
        lines=tuple(_line(name, points, means) for (name, _), points in lines.items()),
        log_x=all(x > 0 for points in lines.values() for x, _ in points),
        levels=levels,
    )
    words = {
        "title": f"{title.title} against {options}, {contest.title}",
        "description": f"{title.title} of each variant at several values of {options}.",
        "caption": "Means over seeds; bands are 95% t intervals. Dotted: variants without it.",
    }
    legend = Legend(looks([name for name, _ in lines]), {})
    return panels(f"option-{slug(contest.title)}-{slug(metric)}", words, [panel], legend, columns=1)


def _sweeps(
    means: Mapping[str, Interval],
) -> Iterator[tuple[tuple[str, str], list[tuple[float, str]]]]:
    """Name and option to the values that ran and their variants, in the order of values."""
    groups: dict[tuple[str, str, str], list[tuple[float, str]]] = {}
    for name in means:
        for option, value, rest in _numbers(name):
            groups.setdefault((rest.name, option, rest.show()), []).append((value, name))
    for (name, option, _), points in groups.items():
        if len({value for value, _ in points}) >= LEAST_POINTS:
            yield (name, option), sorted(points)


def _numbers(variant: str) -> Iterator[tuple[str, float, Selector]]:
    """Each numeric option of a selector, its value, and the selector without it."""
    try:
        chosen = parse(variant)
    except InvalidSelector:
        return
    for option, value in chosen.options.items():
        try:
            number = float(str(value))
        except ValueError:
            continue
        rest = {key: other for key, other in chosen.options.items() if key != option}
        yield option, number, Selector(chosen.name, rest)


def _line(name: str, points: list[tuple[float, str]], means: Mapping[str, Interval]) -> Line:
    here = [means[variant] for _, variant in points]
    bounded = [mean if mean.count > 1 else None for mean in here]
    return Line(
        name=name,
        x=tuple(x for x, _ in points),
        y=tuple(mean.estimate for mean in here),
        low=tuple(b.low if b else m.estimate for b, m in zip(bounded, here, strict=True)),
        high=tuple(b.high if b else m.estimate for b, m in zip(bounded, here, strict=True)),
    )
