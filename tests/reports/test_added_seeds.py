"""Where seeds are added look by look, a difference is of those of the last complete look."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_levels import BASE, OTHER, UNIFORM, Scores, of_seeds

from reports.ablation_rows import ablation_table
from reports.blocks import TableBlock
from reports.folder import RunFolder
from reports.ranked_table.rows import interval_text
from reports.sections.not_shown import not_shown_section

SEEDS: Scores = {
    OTHER: (0.95, 0.10, 0.90, 0.99),
    BASE: (0.30, 0.31, 0.20, 0.05, 0.25),
    UNIFORM: (0.30, 0.301, 0.299, 0.30, 0.302),
}
"""The fourth seed of a variant belongs to a look of five that is not complete."""


@pytest.fixture
def stopped(tmp_path: Path) -> RunFolder:
    """A run that was stopped inside its second look."""
    folder = of_seeds(tmp_path / "run", SEEDS, looks={"first": 3, "first_seed": 0})
    known = folder.catalog
    own = replace(known.variant(OTHER), default_task="copying")
    known.variants = {**known.variants, OTHER: own}
    return folder


def not_shown_text(folder: RunFolder) -> str:
    section = not_shown_section(folder)
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, TableBlock)]
    return table.rows[0][3].text


def test_three_tables_print_the_same_difference_with_the_same_seeds(stopped: RunFolder) -> None:
    ranked = stopped.ranked_lines.set_index("selector").loc[OTHER].to_dict()
    changes = ablation_table(stopped.comparisons).set_index("variant").loc[OTHER].to_dict()
    texts = [interval_text(line, "difference", signed=True) for line in (ranked, changes)]
    texts.append(not_shown_text(stopped))
    assert texts == ["+0.380 (-0.21 – +0.70, 3 seeds)"] * 3


def test_the_seeds_of_a_difference_are_those_that_were_tested(stopped: RunFolder) -> None:
    (comparison,) = stopped.comparisons
    assert comparison.most_seeds == 5
    assert len(comparison.differences(OTHER, BASE)) == 4
    tested = comparison.tested(OTHER, BASE)
    assert tested is not None
    gaps = comparison.gaps_of(tested, OTHER, BASE)
    assert gaps == pytest.approx([0.65, -0.21, 0.70])
    assert sum(gaps) / len(gaps) == pytest.approx(tested.estimate)
    assert len(comparison.gaps_of(None, OTHER, BASE)) == 4
