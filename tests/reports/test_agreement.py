"""Which diagnostics predict tasks on real data: pipeline checks, which are no evidence, do not."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_levels import BASE, NEW, OTHER, UNIFORM, Scores, of_seeds

from reports.blocks import Paragraph, TableBlock
from reports.folder import RunFolder
from reports.sections.agreement import agreement_section
from results.catalog import CatalogTask

NAMES = (BASE, NEW, OTHER, "luong_general", "lstmn", "linear_attention[feature_map=elu]", UNIFORM)
ORDERED: Scores = {
    name: tuple(0.9 - 0.1 * at + 0.001 * seed for seed in range(3)) for at, name in enumerate(NAMES)
}
WHY = "Counts win in every seed."


def run(path: Path, **marks: CatalogTask) -> RunFolder:
    """Two generated tasks and two on real data that all order variants alike.

    Args:
        path: Folder to write.
        marks: Tasks that are described in another way.
    """
    more = dict.fromkeys(("sorting", "imdb", "django"), ORDERED)
    folder = of_seeds(path, ORDERED, more)
    known = folder.catalog
    for name in known.tasks:
        about = {"family": "diagnostics", "generated": name in ("copying", "sorting")}
        known.tasks = {**known.tasks, name: replace(known.task(name), **about)}  # type: ignore[arg-type]  # names of fields
    known.tasks = {**known.tasks, **marks}
    return folder


def pairs(folder: RunFolder) -> tuple[str, list[tuple[str, str]]]:
    """The first sentence of the section, and the pairs of its table."""
    section = agreement_section(folder)
    assert section is not None
    first = section.blocks[0]
    (table,) = [block for block in section.blocks if isinstance(block, TableBlock)]
    assert isinstance(first, Paragraph)
    return first.text, [(row[0].text, row[1].text) for row in table.rows]


def test_every_pair_of_a_diagnostic_and_a_real_task_is_told(tmp_path: Path) -> None:
    text, found = pairs(run(tmp_path / "run"))
    assert len(found) == 4
    assert text.startswith("Significant agreement: ")


@pytest.mark.parametrize(
    ("check", "left"),
    [
        ("imdb", [("copying", "django"), ("sorting", "django")]),
        ("sorting", [("copying", "django"), ("copying", "imdb")]),
    ],
)
def test_a_pipeline_check_is_on_neither_side(
    tmp_path: Path, check: str, left: list[tuple[str, str]]
) -> None:
    generated = check == "sorting"
    mark = CatalogTask(
        short=check, primary="token_accuracy", family="diagnostics", generated=generated,
        pipeline_check=WHY,
    )  # fmt: skip
    text, found = pairs(run(tmp_path / "run", **{check: mark}))
    assert sorted(found) == left
    assert "pipeline check" not in text


def test_where_pipeline_checks_alone_are_left_there_is_no_section(tmp_path: Path) -> None:
    about = CatalogTask(
        primary="token_accuracy", family="diagnostics", generated=False, pipeline_check=WHY
    )
    folder = run(tmp_path / "run", imdb=about, django=about)
    assert agreement_section(folder) is None
