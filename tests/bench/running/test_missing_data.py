"""A run of everything leaves out what has no data here, says so on one line each, and succeeds."""

import gzip
import json
import os
from contextlib import suppress
from dataclasses import replace

import pytest

from bench.api import registry
from bench.api.errors import DataUnavailable
from bench.api.selector import Selector, parse
from bench.running import comparison_cells
from bench.running.families import compared_tasks
from bench.running.left_out import LeftOut
from bench.running.missing_data import lacking_data, missing_data
from bench.running.plan import plan
from bench.running.request import Request
from tasks.data.hub_copies import copy_folder
from tasks.data.paths import DataPlace, place_of

EVERYTHING = Request(preset="families", variants="uniform", seeds=1, minutes=1e6)
READERS = {
    task.name: registry.find("task", task.name).target.data_sets
    for group in compared_tasks("quick")
    for task in group
}
NAMES = {name for names in READERS.values() for name in names}


def tasks_of(made):
    return {parse(planned.cell.task).name for planned in made.quality}


@pytest.fixture(scope="module")
def everything():
    return plan(EVERYTHING)


@pytest.fixture
def directory(tmp_path):
    """Folders of all data sets, with nothing in them: whether they are whole is seen later."""
    for name in NAMES:
        (tmp_path / "directory" / name).mkdir(parents=True)
    return tmp_path / "directory"


def test_without_a_data_directory_every_task_that_reads_a_data_set_is_missing():
    missing = missing_data(EVERYTHING)
    assert {*missing} == {name for name, names in READERS.items() if names}
    for task, reason in missing.items():
        assert "\n" not in reason
        assert any(data in reason for data in READERS[task])
    assert "`python -m bench data fetch stsb`" in missing["stsb"]


def test_one_data_set_that_is_not_there_costs_its_task_alone(directory):
    assert missing_data(EVERYTHING, directory) == {}
    (directory / "stsb").rmdir()
    assert {*missing_data(EVERYTHING, directory)} == {"stsb"}


def test_a_fetched_copy_is_as_good_as_the_data_directory(directory, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    (directory / "stsb").rmdir()
    assert place_of("stsb", directory) is None
    copy_folder("stsb").mkdir(parents=True)
    assert place_of("stsb", directory) == DataPlace(path=copy_folder("stsb"), origin="hub")
    assert missing_data(EVERYTHING, directory) == {}


def test_a_task_that_can_do_without_the_missing_folder_stays(directory, monkeypatch):
    (directory / "multi30k").rmdir()
    target = registry.find("task", "word_alignment").target
    monkeypatch.setattr(target, "__init__", lambda *_: None)
    missing = missing_data(EVERYTHING, directory)
    assert "translation" in missing
    assert "word_alignment" not in missing


@pytest.fixture
def mini(tmp_path):
    """A data directory with WikiText-2 but for its training part, as many have it."""
    folder = tmp_path / "mini" / "wikitext2"
    folder.mkdir(parents=True)
    line = " the storm moved north , and the castle was sold to the bishop . \n"
    for name in ("valid", "test"):
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress(40 * line.encode()))
    return folder.parent


@pytest.mark.parametrize("copied", [False, True])
def test_options_that_need_a_file_which_the_folder_lacks_are_told_unless_a_copy_has_it(
    mini, tmp_path, monkeypatch, copied
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    if copied:
        copy_folder("wikitext2").mkdir(parents=True)
    tasks = ("wikitext2_mini[window=8]", "wikitext2_mini[window=8,full=true]")
    made = plan(Request(preset="smoke", variants="uniform", tasks=",".join(tasks), seeds=1))
    told = lacking_data(made.quality, mini)
    assert len(told) == (0 if copied else 1)
    for task, reason in told.items():
        assert "full=true" in task
        assert "has no train.txt.gz" in reason
        assert "`python -m bench data fetch wikitext2`" in reason


@pytest.mark.parametrize("asked", [{"tasks": "stsb"}, {"preset": "smoke"}, {"quality": False}])
def test_tasks_that_were_named_and_default_tasks_keep_their_cells_and_timing_has_none(asked):
    assert missing_data(replace(EVERYTHING, **asked)) == {}


def test_a_data_directory_that_is_no_folder_is_one_error_and_not_many_tasks_left_out(tmp_path):
    with pytest.raises(DataUnavailable, match="is not a folder; correct the path"):
        missing_data(EVERYTHING, tmp_path / "nowhere")


def test_the_plan_names_what_is_missing_and_the_command_that_runs_it(everything):
    made = plan(EVERYTHING, {"stsb": "it is not here."})
    assert [p for p in everything.quality if parse(p.cell.task).name != "stsb"] == made.quality
    assert tasks_of(everything) - tasks_of(made) == {"stsb"}
    command = "python -m bench run --preset families --tasks stsb --variants uniform --seeds 1"
    assert made.left_out == [LeftOut("training on stsb", "it is not here.", command)]


def test_the_command_of_what_was_left_out_asks_the_same_from_the_same_data_directory():
    asked = replace(EVERYTHING, variants="all", seeds=2, dtype="float64", data_dir="my data")
    (left,) = plan(asked, {"stsb": "it is not here."}).left_out
    command = "python -m bench run --preset families --tasks stsb --seeds 2 --dtype float64"
    assert left.command == f"{command} --data-dir 'my data'"


def test_time_is_not_kept_for_tasks_without_data(everything):
    first = everything.quality[0]
    missing = {parse(first.cell.task).name: "it is not here."}
    after = [p.cell for p in everything.quality if parse(p.cell.task).name not in missing]
    short = replace(EVERYTHING, minutes=5.0)
    full = [planned.cell for planned in plan(short, missing).quality]
    assert full == after[: len(full)]
    assert len(full) > len([c for c in (p.cell for p in plan(short).quality) if c in after])


def test_a_run_without_the_data_says_so_and_succeeds(tmp_path, monkeypatch, capsys, fresh_registry):
    from bench.cli import main as cli

    few = [[Selector("stsb"), Selector("sorting")]]
    monkeypatch.setattr(comparison_cells, "compared_tasks", lambda _: few)
    options = "--preset families --variants uniform --baseline uniform --seeds 1 --inline"
    steps = "--training adam[steps=2,evaluate_every=2] --no-verify"
    arguments = ["run", *options.split(), *steps.split(), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    said = capsys.readouterr()
    (line,) = [line for line in said.err.splitlines() if line.startswith("left out: ")]
    assert line.startswith("left out: stsb: stsb is not on this machine")
    assert "cells: 1 ok\n" in said.out
    written = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    assert [left["label"] for left in written["left_out"]] == ["training on stsb"]
    assert "training on stsb" in (tmp_path / "out" / "details.md").read_text(encoding="utf-8")


def test_a_plan_looks_into_the_data_directory_that_is_named(
    tmp_path, monkeypatch, capsys, fresh_registry
):
    from bench.cli import main as cli

    few = [[Selector("stsb"), Selector("tinyshakespeare"), Selector("sorting")]]
    monkeypatch.setattr(comparison_cells, "compared_tasks", lambda _: few)
    (tmp_path / "tinyshakespeare").mkdir()
    arguments = ["plan", "--preset", "families", "--data-dir", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    said = capsys.readouterr().out
    assert "training on stsb" in said
    assert "training on tinyshakespeare" not in said


@pytest.mark.parametrize("command", ["plan", "run"])
def test_named_tasks_without_data_are_told_before_anything_runs(
    tmp_path, monkeypatch, capsys, fresh_registry, command
):
    from bench.cli import main as cli

    (tmp_path / "empty").mkdir()
    asked = "--variants uniform --baseline uniform --preset smoke --tasks stsb,sorting --no-speed"
    arguments = [command, *asked.split(), "--data-dir", str(tmp_path / "empty")]
    if command == "run":
        arguments += ["--inline", "--no-verify", "--out", str(tmp_path / "out")]
        arguments += ["--training", "adam[steps=2,evaluate_every=2]"]
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    # what --data-dir leaves behind in this process
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path / "empty"))
    with suppress(SystemExit) if command == "plan" else pytest.raises(SystemExit, match="0"):
        cli.main()
    said = capsys.readouterr()
    (line,) = [x for x in (said.out + said.err).splitlines() if x.startswith("no data: ")]
    assert line.startswith("no data: stsb: stsb is not on this machine")
    assert line.endswith("; its cells will be refused")
    if command == "plan":
        assert "2 training (1 of them without data) and 0 speed cells" in said.out
        assert ".;" not in said.out
    else:
        assert "refused, 1 cell: stsb is not on this machine" in said.out


def test_the_directory_reaches_a_loader_as_an_argument_and_never_through_the_environment(
    tmp_path, monkeypatch, fresh_registry
):
    from bench.cli.execution import make_session
    from bench.cli.run_options import RunOptions
    from results.store import Store

    monkeypatch.setenv("BENCH_DATA_DIR", "")
    options = RunOptions(data_dir=str(tmp_path), inline=True)
    session = make_session(options, Store.create(tmp_path / "run"))
    session.store.close()
    assert session.settings.data_dir == str(tmp_path)
    assert not os.environ["BENCH_DATA_DIR"]
