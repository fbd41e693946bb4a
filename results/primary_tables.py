"""The tables of scores on which a run decides its primary hypotheses, as a planner reads them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from results.catalog import CatalogTask, RunCatalog
from results.comparable import SAME, SPLITS, comparable, usual
from results.frame import final_values, scores
from results.looks import Looks
from results.statistics import Decision, Ended, Hypothesis, SequentialTable, decide
from results.statistics.moderated import Scores

LEAST_SEEDS = 2
"""A variant with fewer is tested against nothing."""


@dataclass(frozen=True, kw_only=True)
class PrimaryTable:
    """The scores of one comparison, and what is to be decided by them."""

    cells: frozenset[str]
    """Ids of all cells of the comparison, with a score or without."""
    scores: Scores
    """By the ranking metric, of every variant that may be ranked."""
    ended: Ended
    """Seeds that have been run, by variant."""
    better: Literal["higher", "lower"]
    margin: float | None
    baseline: str | None
    uniform: str | None
    controls: tuple[str, ...]

    def decisions(self, looks: Looks, last: int) -> dict[Hypothesis, Decision]:
        """Decide every primary hypothesis with what the first looks saw.

        Args:
            looks: When the run looks.
            last: Number of the last look that counts; later seeds are as if they were not there.
        """
        seeds = looks.seeds(last)
        seen = {
            name: {seed: value for seed, value in by_seed.items() if seed in seeds}
            for name, by_seed in self.scores.items()
        }
        known = {name: found for name, found in seen.items() if len(found) >= LEAST_SEEDS}
        return decide(
            known,
            self.better,
            baseline=self.baseline,
            uniform=self.uniform,
            controls=self.controls,
            margin=self.margin,
            table=SequentialTable(known, self.ended, looks, last),
        )


def primary_tables(
    frame: pd.DataFrame, catalog: RunCatalog, red: Collection[str]
) -> list[PrimaryTable]:
    """Read the comparisons of a run in which something is decided.

    Args:
        frame: From `results.frame.rows_of`.
        catalog: What the names mean.
        red: Variants with a red certificate, which are not ranked.
    """
    rows = frame[(frame["kind"] == "quality") & (frame["baseline"] == "")]
    cells = rows.drop_duplicates("cell")[["cell", "variant", "seed", *SAME, *SPLITS]]
    found = []
    for group in comparable(cells):
        selector = str(group["task"].iloc[0])
        task = catalog.tasks.get(selector)
        metric = catalog.metrics.get(task.primary) if task else None
        if task is None or metric is None or metric.better == "none":
            continue
        if task.decides(selector, usual(group, "backbone")):
            mine = rows[rows["cell"].isin(group["cell"])]
            found.append(_table(mine, group, catalog, red, task))
    return found


def _table(
    rows: pd.DataFrame,
    cells: pd.DataFrame,
    catalog: RunCatalog,
    red: Collection[str],
    task: CatalogTask,
) -> PrimaryTable:
    scored = scores(final_values(rows, task.primary))
    known = catalog.metrics[task.primary]
    control = {
        name: described.control
        for name in scored
        if (described := catalog.variants.get(name)) and described.control
    }
    uniform = [name for name, kind in control.items() if kind == "uniform_baseline"]
    return PrimaryTable(
        cells=frozenset(map(str, cells["cell"])),
        scores={name: by_seed for name, by_seed in scored.items() if name not in red},
        ended={
            str(name): frozenset(seeds.tolist()) for name, seeds in cells.groupby("variant")["seed"]
        },
        better="lower" if known.better == "lower" else "higher",
        margin=task.margin_by(task.primary, known.margin),
        baseline=catalog.baseline,
        uniform=uniform[0] if uniform else None,
        controls=tuple(control),
    )
