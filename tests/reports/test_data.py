"""What reports say of data and of signatures of metrics."""

import json
from dataclasses import replace
from pathlib import Path

from synthetic import BASE, VARIANTS, quality_cell, quality_rows, record
from synthetic_run import markdown_of, write_json, write_run

from bench.api.task import FEWER as FEWER_OF_TASKS
from reports.folder import read_folder
from reports.render import render
from reports.sections.data_sources import FEWER, short_data
from reports.sections.examples import artifacts_of_one_seed

TASK = "translation[pair=de-en]"
DATA_DIR = "multi30k from the directory: train.de.gz 1f2e3d"
HUB = "multi30k from the hub, revision 37e118 (unpinned)"
SIGNATURE = "nrefs:1|case:mixed|tok:13a|version:2.6.0"


def run_with_notes(folder: Path, data: dict[str, str]) -> str:
    """Render a run of two variants; `data` says what each has read."""
    records = [
        record(quality_cell(TASK, name, seed), "ok", quality_rows(TASK, VARIANTS[name], seed))
        for name in data
        for seed in range(2)
    ]
    write_run(folder, records=records, tasks=[TASK])
    for one in records:
        notes = {"data": data[str(one.cell["variant"])], "bleu": SIGNATURE}
        write_json(folder / "artifacts" / f"{one.id}.json", {"notes": notes})
    return markdown_of(render(folder))


def test_the_note_on_short_data_has_one_name() -> None:
    assert FEWER == FEWER_OF_TASKS


def test_a_report_names_data_and_signatures(tmp_path: Path) -> None:
    text = run_with_notes(tmp_path / "run", {BASE: DATA_DIR, "scaled_dot": DATA_DIR})
    assert DATA_DIR in text
    assert SIGNATURE.replace("|", "\\|") in text
    assert "read different data" not in text


def test_fewer_rows_than_were_asked_for_are_a_warning(tmp_path: Path) -> None:
    run_with_notes(tmp_path / "run", {BASE: DATA_DIR})
    for path in (tmp_path / "run" / "artifacts").iterdir():
        write_json(path, {"notes": {"data": DATA_DIR, FEWER: "5 of 200 in train"}})
    (told,) = short_data(read_folder(tmp_path / "run"))
    assert "fewer rows than were asked for (5 of 200 in train)" in told
    assert told in markdown_of(render(tmp_path / "run"))


def test_cells_of_two_sources_are_warned_of_where_they_are_ranked(tmp_path: Path) -> None:
    text = run_with_notes(tmp_path / "run", {BASE: DATA_DIR, "scaled_dot": HUB})
    _, after = text.split("read different data", 1)
    assert after.index(HUB) < after.index("| Rank")
    assert "differs between cells: 2 values" in text


def test_a_run_without_notes_has_no_section_of_data(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", tasks=[TASK])
    assert "Data and signatures" not in markdown_of(render(folder))


def test_examples_are_of_the_network_that_most_cells_share(tmp_path: Path) -> None:
    lonely, shared = quality_cell(TASK, BASE, 0), quality_cell(TASK, BASE, 0)
    lonely = replace(lonely, backbone="another[width=8]")
    cells = [lonely, shared, quality_cell(TASK, "scaled_dot", 0)]
    records = [record(cell, "ok", quality_rows(TASK, VARIANTS[BASE], 0)) for cell in cells]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    for one in records:
        write_json(folder / "artifacts" / f"{one.id}.json", {"samples": [{"source": "a"}]})
    (found,) = artifacts_of_one_seed(read_folder(folder), key="samples").values()
    assert found[BASE][0].record.id == records[1].id


def test_a_caveat_of_a_task_stands_beneath_its_table(tmp_path: Path) -> None:
    one = record(quality_cell(TASK, BASE, 0), "ok", quality_rows(TASK, VARIANTS[BASE], 0))
    folder = write_run(tmp_path / "run", records=[one], tasks=[TASK])
    write_json(folder / "artifacts" / f"{one.id}.json", {"notes": {"caveat": "The end is known."}})
    text = markdown_of(render(folder))
    assert "\nThe end is known.\n" in text.split("| Rank", 1)[1].split("\n#", 1)[0]


def test_a_caveat_stands_beneath_the_table_of_the_cells_that_noted_it(tmp_path: Path) -> None:
    known, open_ = quality_cell(TASK, BASE, 0), quality_cell(TASK, BASE, 0)
    open_ = replace(open_, backbone="another[width=8]")
    records = [record(cell, "ok", quality_rows(TASK, VARIANTS[BASE], 0)) for cell in (known, open_)]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK])
    for one, said in zip(records, ("The end is known.", "The end is open."), strict=True):
        write_json(folder / "artifacts" / f"{one.id}.json", {"notes": {"caveat": said}})
    tables = [part.split("\n#", 1)[0] for part in markdown_of(render(folder)).split("| Rank")[1:]]
    said = [("\nThe end is known.\n" in one, "\nThe end is open.\n" in one) for one in tables]
    assert {(False, True), (True, False)} <= set(said)
    assert (True, True) not in said


def test_a_comparison_that_is_no_evidence_says_so_in_its_title_and_why(tmp_path: Path) -> None:
    records = [
        record(quality_cell(task, BASE, 0), "ok", quality_rows(task, VARIANTS[BASE], 0))
        for task in (TASK, "recall[pairs=8]")
    ]
    folder = write_run(tmp_path / "run", records=records, tasks=[TASK, "recall[pairs=8]"])
    names = json.loads((folder / "catalog.json").read_text())
    names["tasks"][TASK]["pipeline_check"] = "Counts win."
    write_json(folder / "catalog.json", names)
    titles = {one.task: one.title for one in read_folder(folder).comparisons}
    assert titles[TASK].endswith(" (pipeline check)")
    assert "pipeline" not in titles["recall[pairs=8]"]
    text = markdown_of(render(folder))
    assert "A pipeline check, and no evidence for or against any variant. Counts win." in text
