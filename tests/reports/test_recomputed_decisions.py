"""Every decision of the published runs, computed again from their rows by pandas and SciPy alone.

Nothing of `results.statistics` is used: the formulas are those of ADR 23, written a second time.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from moderated_again import Again, holm

import results
from reports.catalog import Catalog
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.grouping import comparisons

PUBLISHED = Path(__file__).parents[2] / "results" / "published"
TIMES = {"serving", "serving_gpu"}
"""Packs without any training."""
PACKS = sorted({path.stem for path in PUBLISHED.glob("*.parquet")} - TIMES)


def scores_of(comparison: Comparison) -> pd.DataFrame:
    """Test scores: a line a variant, a column a seed."""
    rows = comparison.frame
    rows = rows[(rows["status"] == "ok") & (rows["metric"] == comparison.metric)]
    rows = rows[(rows["axis"] == "") & (rows["split"] == "test")]
    return rows.groupby(["variant", "seed"])["value"].median().unstack("seed")


class AgainAtLooks:
    """The same where seeds were added look by look (ADR 24): the least of p over its share.

    For a difference, looks count that point the same way as the last one.
    """

    def __init__(self, scores: pd.DataFrame, comparison: Comparison) -> None:
        looks = comparison.catalog.looks
        assert looks is not None
        rows = comparison.frame
        self.ended = rows.groupby("variant")["seed"].agg(set)
        self.scores, self.looks = scores, []
        count, left = looks.first, 1.0
        while count <= len(scores.columns) + 8:
            seeds = range(looks.first_seed, looks.first_seed + count)
            seen = scores[[seed for seed in seeds if seed in scores]].dropna(how="all")
            self.looks.append((set(seeds), Again(seen) if len(seen) else None, left / 4))
            count, left = math.ceil(8 * count / 5), left * 3 / 4

    def looks_at(self, one: str, other: str) -> list[tuple[Again, float]]:
        """Tables and shares of the looks of which both have run every seed."""
        found = []
        for seeds, table, share in self.looks:
            if table is None or not seeds <= self.ended[one] & self.ended[other]:
                break
            if {one, other} <= set(table.scores.index):
                found.append((table, share))
        return found

    def p_values(self, one: str, other: str, margin: float | None) -> tuple[float, float]:
        looked = self.looks_at(one, other)
        each = [[p / share for p in table.p_values(one, other, margin)] for table, share in looked]
        ways = [np.sign((t.scores.loc[one] - t.scores.loc[other]).mean()) for t, _ in looked]
        different, equal = np.array(each).T if each else ([1.0], [1.0])
        same = [p for p, way in zip(different, ways, strict=False) if way == ways[-1]]
        return min([1.0, *same]), min(1.0, *equal)

    def ahead(self, one: str, other: str) -> float:
        """The difference at the last look."""
        looked = self.looks_at(one, other)
        scores = looked[-1][0].scores if looked else self.scores
        return float((scores.loc[one] - scores.loc[other]).mean())


def test_the_pack_that_is_left_out_decides_nothing() -> None:
    for name in TIMES:
        assert set(results.load(PUBLISHED / f"{name}.parquet").cells["kind"]) == {"speed"}


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("margin", [None, "5 % of the range"])
def test_every_printed_decision_is_that_of_other_code(pack: str, margin: str | None) -> None:
    run = results.load(PUBLISHED / f"{pack}.parquet")
    tested = 0
    for stored in comparisons(run.rows, Catalog.of(run.catalog), {}):
        comparison = stored if margin is None else _with_margin(stored)
        if not comparison.primary:
            continue
        width = comparison.ranked_by.margin
        scores = scores_of(comparison)
        kept = scores.count(axis=1) >= min(2, scores.count(axis=1).max())
        looks = comparison.catalog.looks
        again = AgainAtLooks(scores[kept], comparison) if looks else Again(scores[kept])
        pairs = [*comparison.primary]
        found = pd.DataFrame(
            [again.p_values(one, other, width) for one, other in pairs],
            columns=["different", "equal"],
        )
        different = holm(found["different"])
        equal = holm(found["equal"]) if width else pd.Series(math.nan, index=found.index)
        sign = -1 if comparison.better == "lower" else 1
        for at, pair in enumerate(pairs):
            ahead = sign * again.ahead(pair.variant, pair.reference) > 0
            expected = "equivalent" if equal[at] < 0.05 else "undecided"
            if different[at] < 0.05:
                expected = "better" if ahead else "worse"
            decision = comparison.primary[pair]
            assert decision.p_adjusted == pytest.approx(different[at], rel=1e-6, abs=1e-12), pair
            assert decision.outcome == expected, (comparison.title, pair)
            tested += 1
    assert tested > 0


def _with_margin(comparison: Comparison) -> Comparison:
    """Runs from before ADR 23 have no margin; this one lets the test see equivalence."""
    low, high = comparison.ranked_by.limits
    if not math.isfinite(high - low):
        return comparison
    return replace(comparison, measured=replace(comparison.ranked_by, margin=0.05 * (high - low)))
