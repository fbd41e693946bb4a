"""Stories of bAbI files, and files that are none."""

from pathlib import Path

import pytest

from bench.api.errors import DataDamaged
from tasks.data.babi import read_stories
from tasks.data.files import TextFile

GOOD = (
    "1 Ada went default task.",
    "2 Where is Ada? \thome\t1",
    "3 Bo took the map.",
    "4 Where is the map?\thome,barn\t3 1",
    "1 Cy slept.",
    "2 Who slept?\tCy\t1",
)


def rows(*lines):
    return list(read_stories(TextFile(path=Path("qa1.txt.gz"), lines=lines, sha256=""), 1))


def test_questions_know_what_was_told_before_them_and_which_facts_they_take():
    one, two, three = rows(*GOOD)
    assert [row["told"] for row in (one, two, three)] == [0, 0, 1]
    assert one["story"] == ("Ada went default task.",)
    assert two["story"] == ("Ada went default task.", "Bo took the map.")
    assert (two["answer"], two["supporting"]) == ("home,barn", (1, 0))
    assert three["story"] == ("Cy slept.",)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("no number", "line 2"),
        ("4 skips a number.", "line 2"),
        ("2 Where?\thome", "line 2"),
        ("2 Where?\thome\tx", "line 2"),
        ("2 Where?\thome\t9", "line 2 names a supporting fact"),
    ],
)
def test_another_line_is_named(line, told):
    with pytest.raises(DataDamaged, match=told):
        rows(GOOD[0], line)
