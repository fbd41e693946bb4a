"""Commands of a report: all that ran into the folder, and the data directory that cells need."""

from dataclasses import replace
from pathlib import Path

from synthetic import BASE, VARIANTS, quality_cell, quality_rows, record
from synthetic_run import write_json, write_run

from reports.blocks import EXPLAINED
from reports.folder import RunFolder, read_folder
from reports.render import document, render

READS, DRAWN = "translation[pair=de-en]", "reversal[length=24]"
RUN = "python -m bench run --data-dir '/home/me/my data' --seeds 2"
LOOK = "python -m bench analyze runs/x --data-dir='/home/me/my data'"


def folder_with(path: Path, catalog: dict[str, object]) -> RunFolder:
    """A run of one variant on a task that reads data and on one that draws its own."""
    tasks = [READS, DRAWN]
    records = [
        record(quality_cell(task, BASE, 0), "ok", quality_rows(task, VARIANTS[BASE], 0))
        for task in tasks
    ]
    folder = read_folder(write_run(path, records=records, tasks=tasks))
    known = folder.store.read_json("catalog.json")
    assert known is not None
    known["tasks"][READS]["needs_download"] = True
    known["tasks"][DRAWN]["needs_download"] = False
    write_json(path / "catalog.json", {**known, **catalog})
    return read_folder(path)


def test_all_commands_stand_above_the_report_in_their_order(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", {"commands": [RUN, LOOK]})
    made = document(folder)
    assert made.commands == (RUN, LOOK)
    assert "The commands below compute everything again, in this order." in made.lead
    assert made.lead.endswith(EXPLAINED)
    written = render(folder.path)
    for path in (written.html, written.markdown):
        assert "analyze runs/x" in path.read_text()


def test_commands_of_several_folders_say_who_joined_them(tmp_path: Path) -> None:
    joined = "“bench report --merge” joined their folders."
    two = [f"{RUN} --out runs/one", f"{RUN} --out 'runs/the other'"]
    assert joined in document(folder_with(tmp_path / "two", {"commands": two})).lead
    one = [f"{RUN} --out runs/one", LOOK]
    assert joined not in document(folder_with(tmp_path / "one", {"commands": one})).lead


PROMISES = ("computes everything again", "compute everything again")


def test_a_published_page_does_not_promise_what_later_code_does(tmp_path: Path) -> None:
    two, one = (
        folder_with(tmp_path / str(len(commands)), {"commands": commands})
        for commands in ([RUN, LOOK], [RUN])
    )
    assert "The commands below made these cells, in this order." in document(two, publish=True).lead
    assert "The command below made these cells." in document(one, publish=True).lead
    for lead in (document(two, publish=True).lead, document(one, publish=True).lead):
        assert not any(promise in lead for promise in PROMISES)


def test_beside_known_limits_nothing_is_promised(tmp_path: Path) -> None:
    facts = {"commands": [RUN], "notes": ["The command plans twelve cells more."]}
    lead = document(folder_with(tmp_path / "run", facts)).lead
    assert "The command below made these cells." in lead
    assert not any(promise in lead for promise in PROMISES)


def test_a_run_that_took_over_cells_says_so(tmp_path: Path) -> None:
    again = f"{RUN} --reuse quick.parquet"
    lead = document(folder_with(tmp_path / "run", {"commands": [again]})).lead
    assert (
        "The command below made these cells. With “--reuse” a command took over cells that were "
        "finished before."
    ) in lead


def test_presets_are_named_however_they_were_typed(tmp_path: Path) -> None:
    commands = [
        f"{RUN} --preset=families",
        f"{RUN} --preset modern --out=runs/--preset",
        f"{RUN} --cell 'x --presets=none'",
    ]
    folder = folder_with(tmp_path / "run", {"commands": commands, "preset": "quick"})
    assert dict(document(folder).facts)["Preset"] == "families, modern, quick"


def test_one_command_is_called_one_and_none_is_not_claimed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", {"commands": [RUN]})
    assert document(folder).commands == (RUN,)
    assert "The command below computes everything again." in document(folder).lead
    assert "below" not in document(folder_with(tmp_path / "none", {"commands": []})).lead


def test_cells_that_read_data_name_the_directory_and_published_ones_name_no_folder(
    tmp_path: Path,
) -> None:
    facts = {"commands": [RUN, LOOK], "data_dir": "/home/me/my data"}
    folder = folder_with(tmp_path / "run", facts)
    by_task = {outcome.cell.task: outcome.cell.label for outcome in folder.outcomes}
    assert folder.command(by_task[READS]).endswith("--data-dir '/home/me/my data'")
    assert "--data-dir" not in folder.command(by_task[DRAWN])
    assert "my data" in render(folder.path).markdown.read_text()
    for text in (path.read_text() for path in vars(render(folder.path, publish=True)).values()):
        assert "/home/me" not in text
        assert "--data-dir DATA_DIR" in text


def test_published_commands_name_no_file_and_no_database_of_the_machine(tmp_path: Path) -> None:
    study = "python -m bench study --storage postgresql://me:SECRET@h/db --plugin /home/me/mine.py"
    again = "python -m bench run --spec /home/me/spec.json --reuse /home/me/quick.parquet"
    facts = {"commands": [study, again], "plugins": ["/home/me/mine.py"]}
    folder = folder_with(tmp_path / "run", facts)
    assert folder.commands == (study, again)
    assert folder.command(folder.outcomes[0].cell.label).endswith("--plugin /home/me/mine.py")
    written = render(folder.path, publish=True)
    for text in (path.read_text() for path in vars(written).values()):
        assert "SECRET" not in text
        assert "/home/me" not in text
    for text in (written.html.read_text(), written.markdown.read_text()):
        assert "--storage STORAGE --plugin mine.py" in text
        assert "--spec spec.json --reuse quick.parquet" in text


def test_published_certificates_name_no_folder_of_the_machine(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", {})
    red = {BASE: {"passed": [], "failed": {"oracle": "OSError: /home/me/x is full"}}}
    write_json(folder.path / "certificates.json", red)
    assert "/home/me" in render(folder.path).details.read_text()
    for text in (path.read_text() for path in vars(render(folder.path, publish=True)).values()):
        assert "/home/me" not in text


def test_a_directory_of_the_environment_is_told_once_above_the_commands(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", {"data_variable": "BENCH_DATA_DIR"})
    text = render(folder.path).details.read_text()
    _, _, below = text.partition("## Commands that reproduce each cell")
    assert below.index("need BENCH_DATA_DIR") < below.index("| ")
    plain = folder_with(tmp_path / "plain", {"data_variable": ""})
    assert "need BENCH" not in render(plain.path).details.read_text()


def test_one_thing_is_one(tmp_path: Path) -> None:
    cells = [record(quality_cell(DRAWN, BASE, 0), "ok", quality_rows(DRAWN, VARIANTS[BASE], 0))]
    folder = read_folder(write_run(tmp_path / "run", records=cells, tasks=[DRAWN]))
    assert document(folder).lead.startswith("1 variant on 1 task, 1 comparison, with ")
    assert replace(folder, published=True).commands == folder.commands
