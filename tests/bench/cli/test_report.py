"""Reports of runs, merged, cut to tasks, published and exported."""

import json
import shutil
from pathlib import Path

from results.pack import Pack
from results.store import Store
from tests.bench.cli.command_lines import SMOKE, report_text


def test_a_report_is_published_and_exported(call, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    code, out, _ = call("report", folder, "--publish", "--export")
    assert code == 0
    written = [Path(line.split(": ")[1]) for line in out.splitlines()]
    assert {path.suffix for path in written} == {".html", ".md", ".csv", ".tex"}
    assert all(path.is_file() for path in written)
    other = tmp_path / "elsewhere"
    assert call("report", folder, "--out", other)[0] == 0
    assert (other / "report.html").is_file()


def test_commands_into_one_folder_keep_what_the_others_wrote(call, tmp_path):
    folder = tmp_path / "run"
    for name in ("dot", "general"):
        assert call("run", "--variants", name, *SMOKE, "--out", folder)[0] == 0
    spec = json.loads((folder / "spec.json").read_text())
    assert spec["variants"] == "general"
    assert [one["variants"] for one in spec["earlier"]] == ["dot"]
    plan = json.loads((folder / "plan.json").read_text())
    planned = " ".join(plan["cells"].values())
    assert "dot" in planned
    assert "general" in planned
    assert call("run", "--spec", folder / "spec.json", "--inline", "--json")[0] == 0


def test_runs_are_merged_into_a_report(call, finished, tmp_path):
    folder = tmp_path / "run"
    assert call("run", "--variants", "general", *SMOKE, "--out", folder)[0] == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, _, err = call("report", folder, "--merge", finished)
    assert code == 2
    assert "--merge writes a run folder of its own; give --out" in err
    assert call("report", folder, "--merge", finished, "--out", tmp_path / "both")[0] == 0
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    folder = tmp_path / "both"
    text = (folder / "report.md").read_text()
    assert "The commands below compute everything again, in this order." in text
    for name in ("general", "dot"):
        assert f"python -m bench run --variants {name} " in text
    names = {r.cell["variant"].partition("[")[0] for r in Store(folder).records()}
    assert names == {"general", "scaled_dot", "dot"}
    assert "dot" in (folder / "report.md").read_text()


def test_a_merge_says_which_lines_of_its_sources_were_lost(call, finished, tmp_path):
    source = shutil.copytree(finished, tmp_path / "source")
    (source / "ledger" / "x.jsonl").write_bytes(b"broken\n{")
    code, _, err = call("report", finished, "--merge", source, "--out", tmp_path / "both")
    assert code == 0
    assert "1 unfinished last line of killed writers was left out" in err
    assert f"1 line of the ledger cannot be read, the first is {source}/ledger/x.jsonl:1: " in err


def test_a_report_of_some_tasks_alone_goes_elsewhere_and_holds_nothing_else(call, tmp_path):
    folder, alone = tmp_path / "run", tmp_path / "alone"
    asked = ["run", "--variants", "dot", "--tasks", "recall,offset", "--preset", "smoke"]
    trained = ["--training", "adam[steps=2]", "--inline", "--no-verify", "--out", folder]
    assert call(*asked, *trained)[0] == 0
    whole = (folder / "report.md").read_bytes()
    pack = tmp_path / "alone.parquet"
    asked = ["report", folder, "--tasks", "recall", "--out", alone, "--export", "--pack", pack]
    assert call(*asked)[0] == 0
    assert {r.cell["task"].partition("[")[0] for r in Pack(pack).records()} == {"recall"}
    assert "offset" not in (alone / "tables" / "cells.csv").read_text()
    text = report_text(alone)
    assert "# recall" in text
    assert "offset" not in text.partition("\n## ")[2]
    assert (folder / "report.md").read_bytes() == whole
    for place in ([], ["--out", folder], ["--out", folder / ".." / folder.name]):
        code, _, err = call("report", folder, "--tasks", "recall", *place)
        assert (code, "give --out" in err) == (2, True)
    assert (folder / "report.md").read_bytes() == whole
    code, _, err = call("report", folder, "--tasks", "recal", "--out", alone)
    assert code == 2
    assert "did you mean 'recall'" in err


def test_options_of_a_task_are_refused_because_a_report_has_all_of_a_task(call, tmp_path):
    """They would choose nothing, and the pack would hold every rule under the name of one."""
    run, other = tmp_path / "run", tmp_path / "other"
    words = ("--variants", "dot", "--preset", "smoke", "--no-speed", "--no-verify", "--inline")
    rules = "transduction[rule=copy],transduction[rule=swap]"
    asked = ("run", *words, "--tasks", rules, "--training", "adam[steps=2]", "--out", run)
    assert call(*asked)[0] == 0
    before = sorted(tmp_path.rglob("*"))
    for some in ("transduction[rule=copy]", "transduction,transduction[rule=copy]"):
        places = ("--out", other, "--export", "--pack", tmp_path / "some.parquet")
        code, out, err = call("report", run, "--tasks", some, *places)
        assert (code, out) == (2, "")
        assert err == (
            "report: --tasks takes names, each for all cells of the task, and "
            "transduction[rule=copy] has options; give transduction.\n"
        )
        assert sorted(tmp_path.rglob("*")) == before
    assert call("report", run, "--tasks", "transduction", *places)[0] == 0
    tasks = {record.cell["task"] for record in Pack(tmp_path / "some.parquet").records()}
    assert len(tasks) == 2, "a bare name has all of its rules"


def test_a_pack_without_the_name_of_one_is_refused_before_the_report_is_written(
    call, finished, tmp_path
):
    code, out, err = call("report", finished, "--out", tmp_path / "page", "--pack", tmp_path / "x")
    assert (code, out) == (2, "")
    assert "a pack ends in .parquet" in err
    assert not (tmp_path / "page").exists()


def test_a_pack_needs_every_file_whole_and_a_report_does_not(call, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    torn = next((folder / "artifacts").glob("*.json"))
    torn.write_text(torn.read_text()[:100])
    code, _, err = call("report", folder, "--pack", tmp_path / "run.parquet")
    assert code == 2
    assert err.count("\n") == 1, "one sentence"
    assert "delete it and run again" in err
    code, _, err = call("report", folder)
    assert code == 0
    assert "cannot be read and are missing below" in err


def test_what_is_no_run_is_not_called_a_pack(call, finished):
    for path in (Path(__file__), finished / "spec.json"):
        code, out, err = call("report", path)
        assert (code, out) == (2, "")
        assert "is a file, and no pack; give the folder that a run wrote with --out." in err


def test_a_published_pack_is_offered_where_there_is_no_folder_of_its_name(call):
    err = call("report", "erasure")[2]
    assert err == (
        "no run folder at erasure: it does not exist; give the folder that a run wrote "
        "with --out, or the pack results/published/erasure.parquet.\n"
    )
    assert "or the pack" not in call("report", "no_such_run")[2]
    assert "has no ledger/ inside; give" in call("report", "reports/published/erasure")[2]
    assert (
        "or the pack results/published/erasure.parquet."
        in (call("report", "reports/published/erasure")[2])
    )


def test_a_folder_that_holds_something_else_is_not_overwritten(call, finished, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    notes = mine / "report.md"
    notes.write_text("my notes\n")
    code, _, said = call("report", finished, "--out", mine)
    assert code == 2
    assert "holds something else than a report" in said
    assert [*mine.iterdir()] == [notes]
    assert notes.read_text() == "my notes\n"


def test_a_file_in_the_place_of_figures_is_refused_before_the_report_is_written(
    call, finished, tmp_path
):
    taken = tmp_path / "taken"
    taken.write_text("mine\n")
    code, out, err = call("report", finished, "--out", tmp_path / "page", "--figures", taken)
    assert (code, out) == (2, "")
    assert err == f"report: {taken} is a file; give --figures a folder.\n"
    assert not (tmp_path / "page").exists()
    assert taken.read_text() == "mine\n"


def test_the_report_of_another_run_is_not_overwritten(call, finished, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(finished, other)
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    code, _, said = call("report", finished, "--out", other)
    assert code == 2
    assert "is another run" in said
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before


def test_an_earlier_report_is_replaced(call, finished, tmp_path):
    for _ in range(2):
        code, said, _ = call("report", finished, "--out", tmp_path / "again")
        assert code == 0, said


def test_a_pack_of_another_run_is_not_overwritten(call, finished, tmp_path):
    other, pack = tmp_path / "run", tmp_path / "run.parquet"
    assert call("run", "--variants", "general", *SMOKE, "--out", other)[0] == 0
    assert call("report", other, "--out", tmp_path / "page", "--pack", pack)[0] == 0
    before = pack.read_bytes()
    code, _, err = call("report", finished, "--out", tmp_path / "page2", "--pack", pack)
    assert code == 2
    assert "they would be lost; give --pack another name" in err
    assert pack.read_bytes() == before
    assert call("report", other, "--out", tmp_path / "page", "--pack", pack)[0] == 0


def test_a_pack_is_not_cut_down_to_some_tasks(call, tmp_path):
    run, pack = tmp_path / "run", tmp_path / "run.parquet"
    words = ("--variants", "general", "--tasks", "after_marker,transduction[rule=copy]")
    assert (
        call("run", *words, "--preset", "smoke", "--no-speed", "--no-verify", "--out", run)[0] == 0
    )
    assert call("report", run, "--out", tmp_path / "page", "--pack", pack)[0] == 0
    before = pack.read_bytes()
    for source in (run, pack):
        some = ("--tasks", "after_marker", "--out", tmp_path / "part", "--pack", pack)
        code, _, err = call("report", source, *some)
        assert code == 2
        assert "the tasks after_marker of" in err
        assert "they would be lost" in err
        assert pack.read_bytes() == before


def test_a_run_folder_has_not_the_name_of_a_pack(call, tmp_path):
    code, _, err = call("run", "--variants", "general", *SMOKE, "--out", tmp_path / "x.parquet")
    assert code == 2
    assert "names that end in .parquet are those of packs" in err
    assert not (tmp_path / "x.parquet").exists()


def test_runs_are_not_merged_into_another_run(call, finished, tmp_path):
    other = tmp_path / "run"
    assert call("run", "--variants", "general", *SMOKE, "--out", other)[0] == 0
    third = tmp_path / "third"
    shutil.copytree(finished, third)
    before = sorted(record.id for record in Store(other).records())
    code, _, err = call("report", finished, "--merge", third, "--out", other)
    assert code == 2
    assert f"{other} is another run, and cells of others would join it" in err
    assert sorted(record.id for record in Store(other).records()) == before
    both = tmp_path / "both"
    for _ in range(2):  # the same merge may be done again
        assert call("report", finished, "--merge", other, "--out", both)[0] == 0


def test_runs_that_were_looked_at_otherwise_are_not_merged(call, finished, tmp_path):
    looked = []
    for name, first in (("three", 3), ("two", 2), ("again", 3)):
        looked.append(shutil.copytree(finished, tmp_path / name))
        catalog = json.loads((finished / "catalog.json").read_text())
        looks = {"first": first, "first_seed": 0}
        (tmp_path / name / "catalog.json").write_text(json.dumps({**catalog, "looks": looks}))
    three, two, again = looked
    code, _, err = call("report", three, "--merge", two, "--out", tmp_path / "both")
    assert code == 2
    assert "from 2, the first of them 0: one p value cannot pay for both" in err
    assert not (tmp_path / "both").exists()
    assert call("report", three, "--merge", again, "--out", tmp_path / "same")[0] == 0


def test_a_merge_is_not_reported_by_task(call, finished, tmp_path):
    both = tmp_path / "both"
    asked = ("report", finished, "--merge", finished, "--out", both, "--tasks", "transduction")
    code, _, err = call(*asked)
    assert code == 2
    assert "merge first, and report the tasks of the merged folder into another one" in err
    assert not both.exists()


def test_runs_of_which_one_is_not_ranked_are_not_merged(call, finished, tmp_path):
    ranked = tmp_path / "ranked"
    shutil.copytree(finished, ranked)
    catalog = json.loads((ranked / "catalog.json").read_text())
    (ranked / "catalog.json").write_text(json.dumps({**catalog, "preset": "quick", "ranks": True}))
    for first, second in ((finished, ranked), (ranked, finished)):
        asked = ("report", first, "--merge", second, "--out", tmp_path / "both")
        code, _, err = call(*asked)
        assert code == 2
        assert "cells of the preset smoke are too small to be ranked beside those of quick" in err
        assert not (tmp_path / "both").exists()


def test_ablations_of_two_bases_that_share_a_changed_variant_are_not_merged(
    call, finished, tmp_path
):
    """A catalog has one base for each variant, so the table of the other one would lose it."""
    folders = [shutil.copytree(finished, tmp_path / name) for name in ("first", "second", "third")]
    changes = (("scaled_dot", "dot"), ("general", "dot"), ("general", "scaled_dot"))
    for folder, (base, variant) in zip(folders, changes, strict=True):
        catalog = json.loads((folder / "catalog.json").read_text())
        change = {"base": base, "axis": "score", "value": "x"}
        catalog["variants"][variant]["ablation"] = change
        (folder / "catalog.json").write_text(json.dumps(catalog))
    first, second, third = folders
    code, out, err = call("report", first, "--merge", second, "--out", tmp_path / "both")
    assert (code, out) == (2, "")
    assert err == (
        f"report: {first} holds an ablation of scaled_dot and {second} one of general, and the "
        "table of general would lose the variants that are changes of both, as dot; report the "
        "runs apart.\n"
    )
    assert not (tmp_path / "both").exists()
    for one in (first, second):  # no variant is a change of two bases
        asked = ("report", one, "--merge", third, "--out", tmp_path / f"{one.name}-merged")
        assert call(*asked)[0] == 0


def test_a_page_of_claims_takes_no_other_folder(call, finished, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(finished, other)
    code, _, err = call("claims", "report", finished, "--out", other)
    assert code == 2
    assert f"claims: {other} is another run" in err


def test_a_study_that_is_refused_leaves_a_run_as_it_is(call, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    kept = {name: (folder / name).read_bytes() for name in ("catalog.json", "spec.json")}
    asked = ("study", "--variants", "dot", "--tasks", "recall", "--trials", "1")
    code, _, err = call(*asked, "--preset", "quick", "--out", folder)
    assert code == 2
    assert "too small to be ranked beside others" in err
    code, _, err = call(*asked, "--preset", "smoke", "--storage", "mysql://a/b", "--out", folder)
    assert code == 2
    assert "cannot open the storage" in err
    assert {name: (folder / name).read_bytes() for name in kept} == kept
    new = tmp_path / "new"
    assert call(*asked, "--preset", "smoke", "--storage", "nonsense", "--out", new)[0] == 2
    assert not new.exists()
