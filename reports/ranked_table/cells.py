"""The cells of a comparison: what each was, and what training stored beside the scores."""

import math
from collections.abc import Mapping
from functools import cached_property
from statistics import median

import pandas as pd

from results.comparable import SPLITS
from results.statistics import Interval, t_interval

CLOCKED = ("_ms", "_per_s", "_cpu_s", "_wall_s")
"""Ends of the names of metrics that a clock measured."""

NOTHING = Interval(estimate=math.nan, low=-math.inf, high=math.inf, count=0)
"""What is known about a quantity without data."""


class ComparedCells:
    """Cells by variant, in the order of their seeds."""

    def __init__(self, frame: pd.DataFrame) -> None:
        """Read the rows of the quality cells of a comparison."""
        self._frame = frame
        self._known: dict[tuple[str, str, str], Interval] = {}

    @cached_property
    def _cells(self) -> dict[str, list[Mapping[str, object]]]:
        columns = ["cell", "variant", "seed", "processor", *SPLITS]
        single = self._frame.loc[self._once, columns].sort_values("seed", kind="stable")
        found: dict[str, list[Mapping[str, object]]] = {}
        for line in single.itertuples(index=False, name=None):
            cell = dict(zip(columns, line, strict=True))
            found.setdefault(str(cell["variant"]), []).append(cell)
        return found

    @cached_property
    def _once(self) -> "pd.Series[bool]":
        """The first row of each cell."""
        return ~self._frame["cell"].duplicated()

    @cached_property
    def processor(self) -> str:
        """What most cells ran on; times of another one are no comparison and are left out."""
        found = self._frame.loc[self._once, "processor"]
        return str(found.mode().min()) if len(found) else ""

    def elsewhere(self, variant: str) -> list[str]:
        """Other processors that cells of a variant ran on."""
        found = {str(cell["processor"]) for cell in self._cells.get(variant, ())}
        return sorted(found - {self.processor})

    def setting(self, variant: str, column: str) -> str:
        """Text of one setting of a variant."""
        return str(self._cells[variant][0][column]) if variant in self._cells else ""

    @property
    def every(self) -> frozenset[str]:
        """Ids of all of them."""
        return frozenset(str(cell["cell"]) for cells in self._cells.values() for cell in cells)

    def seeds(self, variant: str) -> tuple[str, ...]:
        """Ids of the cells of a variant, in the order of their seeds."""
        return tuple(str(cell["cell"]) for cell in self._cells.get(variant, ()))

    def trained(self, variant: str, metric: str) -> Interval:
        """Mean of a metric that scores no data, over the seeds of a variant.

        Times are those of `processor` alone.
        """
        processor = self.processor if metric.endswith(CLOCKED) else ""
        key = (variant, metric, processor)
        if key not in self._known:
            values = self._unscored.get(key, {})
            # in the order of cells, so that a sum has the same last digits each time
            medians = [median(values[cell]) for cell in sorted(values)]
            self._known[key] = t_interval(medians) if medians else NOTHING
        return self._known[key]

    def share(self, variant: str, other: str, metric: str) -> float:
        """A size of a network over that of another variant's; NaN where one is unknown.

        It is taken on the seeds of both, since FLOPs are those of a batch that the seed has drawn.

        Args:
            variant: Whose size it is.
            other: What it is compared with.
            metric: The size; no time, which would depend on the processor.
        """
        mine, theirs = self._by_seed(variant, metric), self._by_seed(other, metric)
        shared = [seed for seed in mine if seed in theirs]
        whole = sum(theirs[seed] for seed in shared)
        return sum(mine[seed] for seed in shared) / whole if whole else math.nan

    def _by_seed(self, variant: str, metric: str) -> dict[object, float]:
        values = self._unscored.get((variant, metric, ""), {})
        return {
            cell["seed"]: median(values[str(cell["cell"])])
            for cell in self._cells.get(variant, ())
            if str(cell["cell"]) in values
        }

    @cached_property
    def _unscored(self) -> dict[tuple[str, str, str], dict[str, list[float]]]:
        """Values by cell of a variant, a metric and, for times, a processor."""
        frame = self._frame
        rows = frame[
            frame["split"].isin(["", "train"]) & (frame["axis"] == "") & (frame["status"] == "ok")
        ]
        columns = ("variant", "metric", "processor", "cell", "value")
        found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        for variant, metric, processor, cell, value in zip(
            *(rows[name].tolist() for name in columns), strict=True
        ):
            key = (variant, metric, processor if metric.endswith(CLOCKED) else "")
            found.setdefault(key, {}).setdefault(cell, []).append(value)
        return found
