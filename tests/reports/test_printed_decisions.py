"""The outcomes on published pages, read from the pages themselves, are those of the tests.

`test_recomputed_decisions.py` computes the same outcomes again by other code.
"""

import re
from pathlib import Path

import pytest

from reports.folder import read_folder
from reports.markdown import escape

ROOT = Path(__file__).parents[2]
PACKS = ("quick", "modern", "families", "flagship", "multi30k", "erasure", "quantity_end")
OUTCOMES = ("better", "worse", "equivalent", "undecided")

Table = dict[str, dict[str, str]]
"""Variant to column to text."""


def cells(line: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def name_of(cell: str) -> str:
    """The variant of a cell, without its link, its marks and its weight."""
    text = re.sub(r" \*\(.*?\)\*", "", cell).replace("**", "").strip()
    linked = re.match(r"\[(.*)\]\(", text)
    return linked[1] if linked else text


def ranked_tables(text: str) -> dict[str, list[Table]]:
    """Tables with ranks, by the heading above them."""
    found: dict[str, list[Table]] = {}
    heading = ""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("### "):
            heading = line.removeprefix("### ").removesuffix(" (pipeline check)")
        if not line.startswith("| Rank |"):
            continue
        heads = [one.split("<br>")[0] for one in cells(line)]
        table: Table = {}
        for row in lines[at + 2 :]:
            if not row.startswith("|"):
                break
            texts = cells(row)
            table[name_of(texts[heads.index("Variant")])] = dict(zip(heads, texts, strict=True))
        found.setdefault(heading, []).append(table)
    return found


@pytest.mark.parametrize("pack", PACKS)
def test_pages_print_the_outcome_of_every_primary_hypothesis(pack: str) -> None:
    folder = read_folder(ROOT / "results" / "published" / f"{pack}.parquet")
    page = (ROOT / "reports" / "published" / pack / "details.md").read_text(encoding="utf-8")
    tables = [one for those in ranked_tables(page).values() for one in those]
    checked = 0
    for comparison in folder.headlines.values():
        label = comparison.catalog.label
        columns = {
            comparison.uniform_baseline: "Against uniform",
            comparison.baseline: "Against baseline",
        }
        expected = {
            (escape(label(pair.variant)), columns[pair.reference]): decision.outcome
            for pair, decision in comparison.primary.items()
        }
        for pair, decision in comparison.primary.items():
            if pair.variant == comparison.baseline:  # the row of uniform attention says it, too
                turned = {"better": "worse", "worse": "better"}
                said = turned.get(decision.outcome, decision.outcome)
                expected[escape(label(pair.reference)), "Against baseline"] = said
        names = {escape(label(variant)) for variant in comparison.variants}
        here = [one for one in tables if set(one) == names]
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
