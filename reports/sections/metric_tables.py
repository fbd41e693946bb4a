"""What a comparison measured beside the metric that ranks it; all of it is shown, none ranked.

Which metric ranks a task is written down before a run. The others are there to be read, so they
have intervals and no p values, and the order of lines is that of the ranking.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from reports.blocks import NO_VALUE, Block, Column, TableBlock, TableCell, clean
from reports.catalog import MetricInfo, uncapitalized
from reports.folder import RunFolder
from reports.numbers import Seen, with_interval
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.sections.data_sources import CAVEAT
from results.statistics import t_interval

PARTS = {
    "length": "length (tokens)",
    "source_length": "shortest source (words)",
    "difficulty": "difficulty",
    "shots": "examples a class",
    "digits": "digits in a scene",
    "facts": "facts to join",
    "task": "task of the set",
    "off_by": "places that a link may be off",
}
"""Axes along which tasks divide a test, as heads; another axis is printed by its name."""
NUMBERED = frozenset({"task"})
"""Parts that are no sizes, so that no line joins them."""
DELAY = "average_lagging"
"""Axis on which a value stands at what a cell itself measured, another place for each cell."""
MOST_PARTS = 24
"""Parts beyond which a table says less than the figure."""
NOT_RANKED = (
    "Folded tables below a ranking hold the other metrics of its test, and the parts into which "
    "the test is divided. They are not ranked, because the task declares which metric ranks, and "
    "nobody chooses it for a run. So they have no p values, and their lines are in the order of "
    "the ranking."
)


def measures(folder: RunFolder, comparison: Comparison, order: Sequence[str]) -> list[Block]:
    """Folded tables of other metrics, of parts of the test, and of what single cells noted.

    Args:
        folder: The run.
        comparison: The comparison.
        order: Its variants, best first.
    """
    found: list[Block] = []
    others = _others(comparison, order)
    if others is not None:
        found.append(others)
    found += [_parts(comparison, metric, axis, order) for metric, axis in parts(comparison)]
    told = _told(folder, comparison, order)
    return [*found, *([told] if told is not None else [])]


def other_metrics(comparison: Comparison) -> list[str]:
    """Names of the metrics of the test that do not rank it, in the order of the task."""
    return [name for name in comparison.stored.metrics() if name != comparison.metric]


def parts(comparison: Comparison) -> list[tuple[str, str]]:
    """Pairs of metric and axis: the ranking metric where it is divided so, else all that are."""
    found: list[tuple[str, str]] = []
    for axis, names in comparison.stored.divided().items():
        chosen = [comparison.metric] if comparison.metric in names else names
        found += [(name, axis) for name in chosen if axis != DELAY]
    return found


def part_title(axis: str) -> str:
    """Head of an axis.

    >>> part_title("shots"), part_title("bars_played")
    ('examples a class', 'bars played')
    """
    return PARTS.get(axis, clean(axis).replace("_", " "))


def _others(comparison: Comparison, order: Sequence[str]) -> TableBlock | None:
    names = other_metrics(comparison)
    if not names:
        return None
    known = [comparison.catalog.metric(name) for name in names]
    values = [comparison.stored.final(name) for name in names]
    return TableBlock(
        key=f"measures-{comparison.key.removeprefix('comparison-')}",
        title=f"Other metrics: {comparison.title}",
        columns=(
            Column(title="Variant"),
            *(
                Column(title=one.arrow, unit=one.unit, numeric=True, better=one.better)
                for one in known
            ),
        ),
        rows=tuple(
            (
                TableCell(text=comparison.catalog.label(name)),
                *(
                    _mean([*found.get(name, {}).values()], metric.limits)
                    for metric, found in zip(known, values, strict=True)
                ),
            )
            for name in order
        ),
        dimmed=tuple(name in comparison.red for name in order),
        folded=True,
    )


def _mean(values: Sequence[float], limits: tuple[float, float]) -> TableCell:
    if not values:
        return TableCell(text=NO_VALUE, sort="")
    mean, seen = t_interval(values), Seen.of(values)
    text = with_interval(mean.estimate, mean.low, mean.high, limits=limits, seen=seen)
    return TableCell(text=text, sort=mean.estimate)


def _parts(comparison: Comparison, metric: str, axis: str, order: Sequence[str]) -> TableBlock:
    found = {
        place: [*by_seed.values()]
        for place, by_seed in comparison.stored.parts(metric, axis).items()
    }
    places = sorted({x for _, x in found})[:MOST_PARTS]
    known = comparison.catalog.metric(metric)
    return TableBlock(
        key=f"parts-{comparison.key.removeprefix('comparison-')}-{axis}-{metric}".replace("_", "-"),
        title=f"{comparison.title}: {uncapitalized(known.axis)} by {part_title(axis)}",
        columns=(
            Column(title="Variant"),
            *(Column(title=f"{x:g}", numeric=True, better=known.better) for x in places),
        ),
        rows=tuple(
            (
                TableCell(text=comparison.catalog.label(name)),
                *(_mean(found.get((name, x), ()), known.limits) for x in places),
            )
            for name in order
        ),
        dimmed=tuple(name in comparison.red for name in order),
        notes=_unlearned(comparison, known, found, places),
        folded=True,
    )


def _unlearned(
    comparison: Comparison,
    metric: MetricInfo,
    found: Mapping[tuple[str, float], Sequence[float]],
    places: Sequence[float],
) -> tuple[str, ...]:
    """Say at which places no contender has learned anything, so that a 0.00 is not read as a fall.

    The reference is uniform attention, else guessing, else the worst value that is possible.
    """
    if metric.better == "none":
        return ()
    sign = -1.0 if metric.better == "lower" else 1.0
    worst = metric.limits[0 if metric.better == "higher" else 1]
    chance = comparison.catalog.level(comparison.task, "chance")
    guess = chance if chance is not None and metric.name == comparison.metric else worst
    best = metric.limits[1 if metric.better == "higher" else 0]
    empty, full = [], []
    for x in places:
        means = {name: fmean(values) for (name, at), values in found.items() if at == x}
        level = means.get(comparison.uniform_baseline or "", guess)
        mine = [mean for name, mean in means.items() if name in comparison.contenders]
        if mine and all(abs(mean - best) <= 1e-9 for mean in (*mine, level)):
            full.append(f"{x:g}")
        elif mine and all(sign * mean <= sign * level + 1e-9 for mean in mine):
            empty.append(f"{x:g}")
    than = "uniform attention" if comparison.uniform_baseline else "guessing"
    notes = [f"At {join(empty)} no variant is better than {than}."] if empty else []
    notes += [f"At {join(full)} every variant has the best possible score."] if full else []
    return tuple(notes)


def _told(folder: RunFolder, comparison: Comparison, order: Sequence[str]) -> TableBlock | None:
    """What cells noted of themselves, where it differs between them."""
    notes = folder.notes.get(comparison.task, {})
    here = {cell for name in order for cell in comparison.cells.seeds(name)}
    lines = [
        (order.index(outcome.cell.variant), outcome.cell.seed, about, value)
        for about, values in notes.items()
        if len(values) > 1 and about != CAVEAT  # which stands below the table
        for value, outcomes in values.items()
        for outcome in outcomes
        if outcome.record.id in here
    ]
    if not lines:
        return None
    return TableBlock(
        key=f"told-{comparison.key.removeprefix('comparison-')}",
        title=f"What single cells noted: {comparison.title}",
        columns=(
            Column(title="Variant"),
            Column(title="Seed", numeric=True),
            Column(title="About"),
            Column(title="Note"),
        ),
        rows=tuple(
            (
                TableCell(text=comparison.catalog.label(order[at])),
                TableCell(text=str(seed), sort=seed),
                TableCell(text=clean(about)),
                TableCell(text=clean(value)),
            )
            for at, seed, about, value in sorted(lines)
        ),
        folded=True,
    )
