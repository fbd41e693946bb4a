"""Where an advantage does not appear: who is behind on the own task, with the reason or without."""

from dataclasses import replace
from pathlib import Path

from synthetic_levels import BASE, NEW, OTHER, UNIFORM, Levels, written

from reports.blocks import Paragraph, TableBlock
from reports.folder import RunFolder
from reports.render import render
from reports.sections.decisions import decisions_section
from reports.sections.not_shown import behind, not_shown_section

WHY = "Its authors report less time and no gain of quality over the baseline."
LEVELS: Levels = {BASE: 0.9, NEW: 0.5, OTHER: 0.899, "luong_general": 0.4, UNIFORM: 0.3}


def told(path: Path, **own: str) -> RunFolder:
    """A run of one task, copying, with the own task of each of its variants."""
    folder = written(path, {"copying": LEVELS})
    known = folder.catalog
    tasks = {NEW: own.get("new", "copying"), OTHER: "copying", "luong_general": "sorting"}
    known.variants = {
        name: replace(
            one,
            default_task=tasks.get(name, ""),
            does_not_show=WHY if name == NEW and "silent" not in own else "",
        )
        for name, one in known.variants.items()
    }
    return folder


def test_only_who_is_behind_on_the_own_task_is_listed(tmp_path: Path) -> None:
    found = {one.variant: one.worse for one in behind(told(tmp_path / "run"))}
    # luong_general is worse, too, but this is not its task
    assert found == {NEW: True, OTHER: False}


def test_the_reason_stands_beside_who_is_worse(tmp_path: Path) -> None:
    section = not_shown_section(told(tmp_path / "run"))
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, TableBlock)]
    assert [[row[0].text, row[4].text, row[5].text] for row in table.rows] == [
        ["shaw_rpr", "worse", WHY]
    ]
    last = section.blocks[-1]
    assert isinstance(last, Paragraph)
    assert "no reason is known: 1 contender, scaled_dot on copying." in last.text


def test_who_is_worse_for_no_known_reason_is_listed_all_the_same(tmp_path: Path) -> None:
    section = not_shown_section(told(tmp_path / "run", silent="yes"))
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, TableBlock)]
    assert [row[5].text for row in table.rows] == ["no reason is known"]


def test_the_order_of_options_makes_no_other_task(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying[a=1,b=2]": LEVELS})
    folder.catalog.variants = {
        name: replace(one, default_task="copying[b=2,a=1]" if name == NEW else "")
        for name, one in folder.catalog.variants.items()
    }
    assert [one.variant for one in behind(folder)] == [NEW]


def test_nobody_behind_is_no_section(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": {BASE: 0.5, NEW: 0.9, UNIFORM: 0.3}})
    assert not_shown_section(folder) is None
    assert "Where an advantage" not in render(folder.path).markdown.read_text(encoding="utf-8")


def test_the_first_page_counts_who_is_behind_and_names_the_section(tmp_path: Path) -> None:
    section = decisions_section(told(tmp_path / "run"))
    assert section is not None
    (counted,) = [
        block.text
        for block in section.blocks
        if isinstance(block, Paragraph) and "Where an advantage does not appear" in block.text
    ]
    assert "1 variant is significantly worse than bahdanau there" in counted
    assert "the difference is undecided for 1 more with a lower score" in counted
