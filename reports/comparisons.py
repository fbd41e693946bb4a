"""Comparisons: groups of cells whose variants may be compared, and their ranking."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from bench.api.selector import Selector, parse
from reports.blocks import clean
from reports.catalog import Better, Catalog, red_reasons
from reports.numbers import Seen, with_interval
from results.frame import final_values, scores
from results.statistics import Interval, Ranked, rank, t_interval

SAME = ["task", "slot", "dtype", "device"]
"""Cells that differ here are never compared."""

SPLITS = ["backbone", "protocol", "impl", "revisions"]
"""Cells that differ here are compared (a recipe may bring its decoder, a study its learning rate)
and marked, unless one variant has several; then the comparison splits."""

CLOCKED = ("_ms", "_per_s", "_cpu_s")
"""Ends of the names of metrics that a clock measured."""

NOTHING = Interval(estimate=math.nan, low=-math.inf, high=math.inf, count=0)
"""What is known about a quantity without data."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All quality cells of one task that compete."""

    key: str
    """`comparison-1`, in the order of the report."""
    title: str
    task: str
    metric: str
    frame: pd.DataFrame
    """Rows of the quality cells of this comparison."""
    aside: pd.DataFrame
    """Test rows of what needs no network, of all cells of the task, oldest first."""
    catalog: Catalog
    red: Mapping[str, list[str]]
    """Why each variant with a red certificate has one."""

    @property
    def better(self) -> Better:
        """Which side of the metric is best."""
        return self.catalog.metric(self.metric).better

    @cached_property
    def place(self) -> tuple[str, str, str]:
        """Slot, dtype and device, which timings must share with the scores beside them."""
        first = self.frame.iloc[0]
        return str(first["slot"]), str(first["dtype"]), str(first["device"])

    @property
    def variants(self) -> list[str]:
        """Every variant that was asked, with or without a value."""
        return sorted(str(name) for name in self.frame["variant"].unique())

    @property
    def baseline(self) -> str | None:
        """The baseline, if it competes here with a value and a green certificate."""
        name = self.catalog.baseline
        return name if name in self.scores and name not in self.red else None

    @cached_property
    def scores(self) -> dict[str, dict[int, float]]:
        """Test score by seed of each variant."""
        return scores(final_values(self.frame, self.metric))

    @cached_property
    def means(self) -> dict[str, Interval]:
        """Mean score of each variant that has one, ranked or not."""
        return {name: t_interval([*by_seed.values()]) for name, by_seed in self.scores.items()}

    @property
    def most_seeds(self) -> int:
        """Seeds of the variant that has most."""
        return max((len(by_seed) for by_seed in self.scores.values()), default=0)

    @cached_property
    def compared(self) -> dict[str, Ranked]:
        """Ranks and differences to the baseline, without variants of a red certificate.

        Where some have several seeds, variants with one are left out: nothing tells them from any
        other, so that the best of them would open the first rank for all.
        """
        least = min(2, self.most_seeds)
        fair = {
            name: found
            for name, found in self.scores.items()
            if name not in self.red and len(found) >= least
        }
        if self.better == "none" or not fair:
            return {}
        base = self.baseline if self.baseline in fair else None
        fair = {name: fair[name] for name in sorted(fair, key=self._simplicity)}
        return {line.variant: line for line in rank(fair, self.better, baseline=base)}

    def _simplicity(self, variant: str) -> tuple[bool, float, str]:
        """Order of equal means: the baseline, then what has fewer parameters, then by name."""
        count = self.trained(variant, "parameters_count").estimate
        known = count if math.isfinite(count) else math.inf
        return variant != self.catalog.baseline, known, variant

    @property
    def leading(self) -> list[Ranked]:
        """Lines of rank 1 of which a seed, at least, has learned; no two of them are told apart.

        What a report calls the best, wherever it does; empty where each has one seed.
        """
        if self.most_seeds < 2:
            return []
        first = [line for line in self.ranking if line.rank == 1]
        return [line for line in first if not self.lost_every_seed(line.variant)]

    @property
    def uniform_baseline(self) -> str | None:
        """The variant that does not look, beside which the others have learned or not."""
        return next(
            (name for name in self.scores if self.catalog.flag(name, "uniform_baseline")), None
        )

    def lost_every_seed(self, variant: str) -> bool:
        """Whether no seed of a contender is better than not looking."""
        lost, seeds = self.lost_seeds(variant)
        return 0 < seeds == lost and not self.catalog.flag(variant, "control")

    def above_every_seed(self, variant: str) -> list[str]:
        """Contenders of which each seed is better than each of a variant, on the test."""
        sign = -1.0 if self.better == "lower" else 1.0
        level = max(sign * value for value in self.scores[variant].values())
        return [
            name
            for name in self.contenders
            if name in self.compared
            and min(sign * value for value in self.scores[name].values()) > level
        ]

    def score_text(self, variant: str) -> str:
        """Mean score with its interval, or the extremes of its seeds where that cannot be."""
        mean = self.means.get(variant, NOTHING)
        seen = Seen.of(self.scores.get(variant, {}).values())
        unit = self.catalog.metric(self.metric).unit
        return with_interval(mean.estimate, mean.low, mean.high, unit=unit, seen=seen)

    def differences(self, variant: str, other: str | None) -> list[float]:
        """Score minus that of another variant on each common seed."""
        mine, theirs = self.scores.get(variant, {}), self.scores.get(other or "", {})
        return [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]

    def lost_seeds(self, variant: str) -> tuple[int, int]:
        """Seeds that are no better than not looking, and all seeds; (0, 0) where none can tell.

        A seed is lost if it does not beat the uniform_baseline's mean on validation.
        """
        found = self._validation
        if self.uniform_baseline not in found or variant not in found or self.better == "none":
            return 0, 0
        level = fmean(found[self.uniform_baseline].values())
        sign = -1.0 if self.better == "lower" else 1.0
        mine = found[variant].values()
        return sum(sign * value <= sign * level for value in mine), len(mine)

    @cached_property
    def _validation(self) -> dict[str, dict[int, float]]:
        return scores(final_values(self.frame, self.metric, split="validation"))

    @cached_property
    def without(self) -> dict[str, dict[int, float]]:
        """Test score by seed of what needs no network, best mean first.

        It is the same in every cell of a task and seed, so the newest cell speaks for all.
        """
        rows = self.aside[self.aside["metric"] == self.metric]
        found: dict[str, dict[int, float]] = {}
        for (name, seed), values in rows.groupby(["baseline", "seed"])["value"]:
            found.setdefault(clean(str(name)), {})[int(str(seed))] = float(values.iloc[-1])
        side = 1.0 if self.better == "lower" else -1.0
        return dict(sorted(found.items(), key=lambda item: side * fmean(item[1].values())))

    @property
    def contenders(self) -> list[str]:
        """Variants with a score and a green certificate that are no controls."""
        fair = [name for name in self.scores if name not in self.red]
        return [name for name in fair if not self.catalog.flag(name, "control")]

    @property
    def beats_the_rest(self) -> list[str]:
        """Contenders that are better than the best of `without` in every seed."""
        level = next(iter(self.without.values()), {})
        sign = -1.0 if self.better == "lower" else 1.0

        def wins(by_seed: Mapping[int, float]) -> bool:
            pairs = [(by_seed[seed], level[seed]) for seed in by_seed.keys() & level.keys()]
            return bool(pairs) and all(sign * mine > sign * other for mine, other in pairs)

        return [name for name in self.contenders if wins(self.scores[name])]

    @property
    def ranking(self) -> list[Ranked]:
        """Lines by rank, best first; empty where the preset ranks nothing.

        With one seed each they are in the order of their scores, and their ranks mean nothing.
        """
        return [*self.compared.values()] if self.catalog.ranks else []

    @cached_property
    def cells(self) -> dict[str, pd.DataFrame]:
        """One line per cell of each variant, in the order of seeds."""
        single = self.frame.drop_duplicates("cell").sort_values("seed", kind="stable")
        return {str(name): lines for name, lines in single.groupby("variant")}

    @cached_property
    def _unscored(self) -> dict[tuple[str, str], Interval]:
        rows = self.frame[self.frame["split"].isin(["", "train"]) & (self.frame["axis"] == "")]
        clocked = rows["metric"].str.endswith(CLOCKED) & (rows["processor"] != self.processor)
        kept = rows[(rows["status"] == "ok") & ~clocked]
        single = kept.groupby(["variant", "metric", "cell"])["value"]
        return {
            (str(name), str(metric)): t_interval(values.to_numpy(dtype=np.float64))
            for (name, metric), values in single.median().groupby(["variant", "metric"])
        }

    @cached_property
    def processor(self) -> str:
        """What most cells ran on; times of another one are no comparison and are left out."""
        single = self.frame.drop_duplicates("cell")
        return str(single["processor"].mode().min()) if len(single) else ""

    def elsewhere(self, variant: str) -> list[str]:
        """Other processors that cells of a variant ran on."""
        cells = self.cells.get(variant)
        found = set() if cells is None else {str(name) for name in cells["processor"]}
        return sorted(found - {self.processor})

    def trained(self, variant: str, metric: str) -> Interval:
        """Mean of a metric that scores no data, over the seeds of a variant.

        Times are those of `processor` alone.
        """
        return self._unscored.get((variant, metric), NOTHING)

    def setting(self, variant: str, column: str) -> str:
        """Text of one setting of a variant."""
        return str(self.cells[variant][column].iloc[0]) if variant in self.cells else ""

    def seeds(self, variant: str) -> tuple[str, ...]:
        """Ids of the cells of a variant, in the order of their seeds."""
        found = self.cells.get(variant)
        return () if found is None else tuple(str(cell) for cell in found["cell"])


def comparisons(
    frame: pd.DataFrame,
    catalog: Catalog,
    certificates: Mapping[str, Any] | None = None,
) -> list[Comparison]:
    """Group the quality cells of a run."""
    every = frame[frame["kind"] == "quality"]
    cells = every[every["baseline"] == ""]
    red = {str(name): red_reasons(certificates, str(name)) for name in cells["variant"].unique()}
    groups = list(_groups(cells))
    aside = every[(every["baseline"] != "") & (every["split"] == "test")]
    aside = aside[aside["status"] == "ok"].sort_values("finished", kind="stable")
    shared = [column for column in (*SAME[1:], *SPLITS) if cells[column].nunique() > 1]
    tasks = [str(group["task"].iloc[0]) for group in groups]
    found: list[Comparison] = []
    for at, (task, group) in enumerate(zip(tasks, groups, strict=True), start=1):
        title = catalog.task_label(task)
        if tasks.count(task) > 1:
            siblings = [one for name, one in zip(tasks, groups, strict=True) if name == task]
            parts = ", ".join(_apart(group, siblings, shared))
            title += f" ({parts})" if parts else f" ({at})"
            if any(comparison.title == title for comparison in found):
                title += f" ({at})"
        found.append(
            Comparison(
                key=f"comparison-{at}",
                title=title,
                task=task,
                metric=catalog.primary(task) or _only_metric(group),
                frame=group,
                aside=aside[aside["task"] == task],
                catalog=catalog,
                red={name: reasons for name, reasons in red.items() if reasons},
            )
        )
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
            yield value if "[" not in value else _differing(value, others - {value})


def _single(group: pd.DataFrame, column: str) -> str:
    """What tells this comparison from others: the value that all of its cells share, or nothing.

    Backbones may differ within a comparison; it is named by the one that is used most.
    """
    if column == "backbone":
        return _usual(group.drop_duplicates("cell"), column)
    return str(group[column].iloc[0]) if group[column].nunique() == 1 else ""


def _usual(cells: pd.DataFrame, column: str) -> str:
    """The most frequent value, the first by name of several."""
    return str(cells[column].mode().iloc[0])


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
            shown.append(f"{key}={chosen}")
    return ", ".join(shown)


def _selectors(value: object) -> tuple[Selector, ...]:
    return value if isinstance(value, tuple) else ()


def _told(one: Selector, rivals: list[Selector]) -> str:
    """The name of a component, with what tells it from others of that name."""
    alike = {other.show() for other in rivals if other.name == one.name} - {one.show()}
    return f"{one.name}[{_differing(one.show(), alike)}]" if alike else one.name


def _groups(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
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
    cells = group.drop_duplicates("cell")
    doubled = cells[cells.duplicated(["variant", "seed"], keep=False)]
    names = {*map(str, doubled["backbone"]), _usual(cells, "backbone")}
    hosts = {name: parse(name) for name in sorted(names)}
    found = {}
    for name in map(str, cells["backbone"].unique()):
        mine = parse(name)
        alike = [host for host, other in hosts.items() if other.name == mine.name]
        found[name] = min(alike, key=lambda host: _distance(mine, hosts[host]), default=name)
    return found


def _distance(one: Selector, other: Selector) -> int:
    """Options that differ."""
    keys = {*one.options, *other.options}
    return sum(one.options.get(key) != other.options.get(key) for key in keys)


def _doubled(group: pd.DataFrame) -> bool:
    return bool(group.drop_duplicates("cell").duplicated(["variant", "seed"]).any())


def _only_metric(group: pd.DataFrame) -> str:
    """A task that the catalog does not know is ranked by its first test metric, if any."""
    found = group.loc[(group["split"] == "test") & (group["axis"] == ""), "metric"]
    return str(found.iloc[0]) if len(found) else ""
