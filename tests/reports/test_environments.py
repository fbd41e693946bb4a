"""The environments of a report are those that its cells name."""

import json
from dataclasses import replace
from pathlib import Path

from synthetic import ENVIRONMENT, TASKS
from synthetic_run import quality_records, write_run

from reports.blocks import Paragraph, TableBlock
from reports.folder import read_folder
from reports.sections.provenance import environment_section

TASK = next(iter(TASKS))
OTHER = "0123456789ab"
SEVERAL = "Cells of this run have several environments."


def told(folder: Path) -> tuple[list[str], str]:
    """Titles of the tables, and all paragraphs."""
    blocks = environment_section(read_folder(folder)).blocks
    titles = [block.title for block in blocks if isinstance(block, TableBlock)]
    return titles, " ".join(block.text for block in blocks if isinstance(block, Paragraph))


def start_again(folder: Path) -> None:
    """Write what every start of a run writes: a file of the machine and the commit."""
    facts = json.loads((folder / "environments" / f"{ENVIRONMENT}.json").read_text())
    facts |= {"git_dirty": True, "id": OTHER}
    (folder / "environments" / f"{OTHER}.json").write_text(json.dumps(facts))


def test_an_environment_that_no_cell_names_is_neither_counted_nor_shown(tmp_path: Path) -> None:
    records = [*quality_records([TASK], 2)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    start_again(folder)
    assert len(read_folder(folder).environments) == 2
    titles, text = told(folder)
    assert titles == [f"Environment {ENVIRONMENT}, {len(records)} cells"]
    assert SEVERAL not in text


def test_cells_of_two_environments_are_warned_of(tmp_path: Path) -> None:
    first, *rest = quality_records([TASK], 2)
    moved = [replace(first, environment=OTHER), *rest]
    folder = write_run(tmp_path / "run", records=moved, tasks=[TASK])
    titles, text = told(folder)
    assert SEVERAL in text, "also where the facts of one are lost"
    start_again(folder)
    titles, text = told(folder)
    assert sorted(titles) == [
        f"Environment {OTHER}, 1 cell",
        f"Environment {ENVIRONMENT}, {len(rest)} cells",
    ]
    assert SEVERAL in text


def test_a_run_whose_cells_name_no_stored_environment_says_so(tmp_path: Path) -> None:
    moved = [replace(one, environment=OTHER) for one in quality_records([TASK], 2)]
    titles, text = told(write_run(tmp_path / "run", records=moved, tasks=[TASK]))
    assert titles == []
    assert text == "No environment was stored."
