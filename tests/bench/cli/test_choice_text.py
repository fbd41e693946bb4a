"""The choice table of a terminal."""

import pytest

from bench.cli.choice_text import _rows
from reports.blocks import Column, TableBlock, TableCell


def block():
    rows = [
        ("Copying and method naming", "pointer_generator", "1.00 against 0.10 ± 0.05, 3 seeds"),
        ("A use with a long name " * 5, "supervised_attention[weight=10.0]", "n.s. " * 40),
    ]
    return TableBlock(
        key="choices",
        title="What to choose",
        columns=tuple(Column(title=title) for title in ("Need", "Variant", "Evidence", "Cost")),
        rows=tuple(
            (*(TableCell(text=text) for text in row), TableCell(text="1.2× training step"))
            for row in rows
        ),
    )


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_table_stays_within_the_terminal_and_loses_no_word(width):
    text = _rows(block(), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("n.s.") == 40
    assert "pointer_generator" in text


def test_a_wide_terminal_has_one_line_a_row():
    first = _rows(block(), 400).splitlines()[2]
    assert first.split("  ")[0] == "Copying and method naming"
    assert "1.00 against 0.10 ± 0.05, 3 seeds" in first
