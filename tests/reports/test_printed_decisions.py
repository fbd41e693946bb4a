"""The outcomes on published pages, read from the pages themselves, are those of the tests.

`test_recomputed_decisions.py` computes the same outcomes again by other code.
"""

from pathlib import Path

import pytest
from printed_tables import name_of, tables
from recomputed import RANKED

from reports.folder import read_folder

ROOT = Path(__file__).parents[2]
OUTCOMES = ("better", "worse", "equivalent", "undecided")


@pytest.mark.parametrize("pack", RANKED)
def test_pages_print_the_outcome_of_every_primary_hypothesis(pack: str) -> None:
    folder = read_folder(ROOT / "results" / "published" / f"{pack}.parquet")
    page = ROOT / "reports" / "published" / pack / "details.md"
    printed = [{name_of(row["Variant"]): row for row in one.rows} for one in tables(page, "Rank")]
    checked = 0
    for comparison in folder.headlines.values():
        label = comparison.catalog.label
        columns = {
            comparison.uniform_baseline: "Against uniform",
            comparison.baseline: "Against baseline",
        }
        expected = {
            (label(pair.variant), columns[pair.reference]): decision.outcome
            for pair, decision in comparison.primary.items()
        }
        for pair, decision in comparison.primary.items():
            if pair.variant == comparison.baseline:  # the row of uniform attention says it, too
                turned = {"better": "worse", "worse": "better"}
                said = turned.get(decision.outcome, decision.outcome)
                expected[label(pair.reference), "Against baseline"] = said
        names = {label(variant) for variant in comparison.variants}
        here = [one for one in printed if set(one) == names]
        assert here or not expected, comparison.title
        shown = [
            {
                (name, column): row[column].split(" ")[0]
                for name, row in table.items()
                for column in columns.values()
                if row.get(column, "").split(" ")[0] in OUTCOMES
            }
            for table in here
        ]
        assert expected in shown or not expected, comparison.title
        checked += len(expected)
    assert checked > 0
