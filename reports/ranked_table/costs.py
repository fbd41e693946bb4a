"""Which timing is shown with the scores of a comparison."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.ranked_table.cells import NOTHING
from reports.ranked_table.comparison import BESIDE_SCORES, Comparison
from results.statistics import Interval

Costs = dict[tuple[str, ...], tuple[Interval, str]]
"""Quantity, and shape with length, by the place of a comparison, variant and metric."""


def timed(comparison: Comparison, variant: str, metric: str, costs: Costs) -> Interval:
    """Median of rounds between its quantiles; a count has neither spread nor bounds."""
    found = costs.get((*comparison.place, variant, metric))
    return NOTHING if found is None else found[0]


def costs_at_one_length(summary: pd.DataFrame, baseline: str) -> Costs:
    """Pick the timings that are shown with the scores from a summary of all timings.

    In each slot, format and code this is the shape and then the protocol with most lines, and in
    it the length at which most variants were timed beside the baseline, the greatest of several.
    """
    found: Costs = {}
    for place, group in summary.dropna(subset="length").groupby([*BESIDE_SCORES]):
        known = _most(_most(group, "shape"), "protocol")
        mine = known[known["variant"] == baseline]
        beside = known if mine.empty else known[known["length"].isin(mine["length"])]
        often = beside.groupby("length")["variant"].nunique()
        length = often[often == often.max()].index.max()
        for line in known[known["length"] == length].to_dict("records"):
            key = (*(str(part) for part in place), str(line["variant"]), str(line["metric"]))
            found.setdefault(key, (_quantiles(line), f"{line['shape']} at length {length:g}"))
    return found


def _most(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Lines with the most frequent value of a column."""
    return table[table[column] == table[column].value_counts().index[0]]


def _quantiles(line: Mapping[Any, Any]) -> Interval:
    value, rounds = float(line["median"]), int(line["rounds"])
    if rounds == 1:
        return Interval(estimate=value, low=value, high=value, count=1)
    return Interval(estimate=value, low=float(line["q10"]), high=float(line["q90"]), count=rounds)
