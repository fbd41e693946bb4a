"""Contests: groups of cells whose variants may be compared, and their ranking."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.catalog import Catalog, red_reasons
from results.frame import final_values, scores
from results.statistics import Interval, Ranked, rank, t_interval

SAME = ["task", "slot", "dtype", "device"]
"""Cells that differ here are never compared."""

SPLITS = ["backbone", "protocol", "impl", "revisions"]
"""Cells that differ here are compared (a recipe may bring its wiring, a study its learning rate)
and marked, unless one variant has several; then the contest splits."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """All quality cells of one task that compete."""

    key: str
    """`contest-1`, in the order of the report."""
    title: str
    task: str
    metric: str
    frame: pd.DataFrame
    """Rows of the quality cells of this contest."""
    catalog: Catalog
    red: Mapping[str, list[str]]
    """Why each variant with a red certificate has one."""

    @property
    def better(self) -> str:
        """Which side of the metric is best."""
        return self.catalog.metric(self.metric).better

    @property
    def variants(self) -> list[str]:
        """Every variant that was asked, with or without a value."""
        return sorted(str(name) for name in self.frame["variant"].unique())

    @property
    def baseline(self) -> str | None:
        """The baseline, if it competes here with a value and a green certificate."""
        name = self.catalog.baseline
        return name if name in self.scores() and name not in self.red else None

    def scores(self, split: str = "test") -> dict[str, dict[int, float]]:
        """Value by seed of each variant."""
        return scores(final_values(self.frame, self.metric, split=split))

    def means(self) -> dict[str, Interval]:
        """Mean score of each variant that has one, ranked or not."""
        return {name: t_interval([*by_seed.values()]) for name, by_seed in self.scores().items()}

    def ranking(self) -> list[Ranked]:
        """Ranks of all variants without a red certificate; none where the preset ranks nothing."""
        if not self.catalog.ranks or self.better == "none":
            return []
        fair = {name: found for name, found in self.scores().items() if name not in self.red}
        side: Any = self.better
        return rank(fair, side, baseline=self.baseline) if fair else []

    def compared(self) -> list[Ranked]:
        """Differences to the baseline, ranks or no ranks, without red certificates."""
        if self.better == "none":
            return []
        fair = {name: found for name, found in self.scores().items() if name not in self.red}
        side: Any = self.better
        return rank(fair, side, baseline=self.baseline) if fair else []

    def setting(self, variant: str, column: str) -> str:
        """Text of one setting of a variant."""
        found = self.frame.loc[self.frame["variant"] == variant, column]
        return str(found.iloc[0]) if len(found) else ""

    def seeds(self, variant: str) -> tuple[str, ...]:
        """Ids of the cells of a variant, in the order of their seeds."""
        mine = self.frame[self.frame["variant"] == variant].sort_values("seed", kind="stable")
        return tuple(str(cell) for cell in mine["cell"].unique())


def contests(
    frame: pd.DataFrame,
    catalog: Catalog,
    certificates: Mapping[str, Any] | None = None,
) -> list[Contest]:
    """Group the quality cells of a run."""
    cells = frame[frame["kind"] == "quality"]
    red = {str(name): red_reasons(certificates, str(name)) for name in cells["variant"].unique()}
    groups = list(_groups(cells))
    shared = [column for column in (*SAME[1:], *SPLITS) if cells[column].nunique() > 1]
    tasks = [str(group["task"].iloc[0]) for group in groups]
    found = []
    for at, (task, group) in enumerate(zip(tasks, groups, strict=True), start=1):
        title = catalog.task_label(task)
        if tasks.count(task) > 1:
            parts = [str(group[c].iloc[0]) for c in shared if group[c].nunique() == 1]
            title += f" ({', '.join(parts)})" if parts else f" ({at})"
        found.append(
            Contest(
                key=f"contest-{at}",
                title=title,
                task=task,
                metric=catalog.primary(task) or _only_metric(group),
                frame=group,
                catalog=catalog,
                red={name: reasons for name, reasons in red.items() if reasons},
            )
        )
    return found


def _groups(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for _, group in cells.groupby(SAME, sort=True):
        yield from _split(group, SPLITS)


def _split(group: pd.DataFrame, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Split by one column after another while a variant has two cells for one seed."""
    if not columns or not _doubled(group):
        yield group
        return
    for _, part in group.groupby(columns[0], sort=True):
        yield from _split(part, columns[1:])


def _doubled(group: pd.DataFrame) -> bool:
    return bool(group.drop_duplicates("cell").duplicated(["variant", "seed"]).any())


def _only_metric(group: pd.DataFrame) -> str:
    """A task that the catalog does not know is ranked by its first test metric, if any."""
    found = group.loc[(group["split"] == "test") & (group["axis"] == ""), "metric"]
    return str(found.iloc[0]) if len(found) else ""
