"""Runs: tables, spec files, labels of cells, exit codes, and going on."""

import json
import os
import re
import shlex
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench.api.cell import KINDS, RUN_KINDS, cell_from_dict, parse_label
from bench.api.errors import InvalidConfig
from bench.cli import execution, registered
from bench.cli.run import OTHER_COMMANDS, cell_plan
from bench.cli.run_options import RunOptions
from bench.running import devices, matched_plan, runner
from bench.running.durations import spoken
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.request import Request
from bench.training.analysis import model_path
from reports.folder import read_folder
from results.store import Store
from tests.bench.cli.command_lines import SMOKE, report_text, with_others

WRONG = '''"""A score whose energies are doubled, which its loops do not say."""

from bench.api.config import NoOptions
from bench.api.registry import register
from variants.scores.scaled_dot import ScaledDotScore


@register("score", "double")
class Double(ScaledDotScore):
    """Not what its loops compute."""

    def energy(self, call, features):
        """Twice the energy."""
        return 2 * super().energy(call, features)

    def dot_form(self, call):
        """No fused form."""
        return None
'''


@pytest.fixture
def wrong_plugin(tmp_path, fresh_registry):
    path = tmp_path / "a wrong one.py"
    path.write_text(WRONG)
    return path


def test_a_run_ends_with_the_table_and_the_path_of_the_report(call, finished):
    code, out, err = call("run", "--variants", "dot", *SMOKE, "--out", finished)
    assert code == 0
    assert "after_marker: along_training_token_accuracy" in out
    assert f"report: {finished / 'report.html'}" in out
    assert "2 were finished before" in out
    assert "2 training cells and 0 speed cells" in err
    assert f"into {finished}, 2 of them finished before, about 0 s on" in err


def test_a_run_counts_the_time_of_what_is_left_alone(call, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    asked = ["--preset", "smoke", "--tasks", "after_marker", "--no-speed"]
    alone = plan(RunOptions(variants="general", preset="smoke", tasks="after_marker", speed=False))
    (new,) = (one.seconds for one in alone.quality if one.spec.name == "general")
    words = ["run", "--variants", "dot,general", *asked, "--no-verify", "--jobs", 1, "--inline"]
    said = call(*words, "--out", folder)[2]
    assert f"2 of them finished before, about {spoken(new)} on 1 process, not" in said


def test_a_run_with_json_prints_json_alone(call, finished):
    code, out, _ = call("run", "--variants", "dot", *SMOKE, "--out", finished, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["counts"], found["already_finished"]) == ({}, 2)
    assert len(found["table"]) == 2


def test_a_spec_file_finds_everything_finished(call, finished):
    code, out, _ = call("run", "--spec", finished / "spec.json", "--inline", "--json")
    found = json.loads(out)
    assert (code, found["counts"], found["already_finished"]) == (0, {}, 2)
    assert found["folder"] == str(finished)


def test_a_spec_file_reruns_everything_elsewhere(call, finished, tmp_path):
    there = tmp_path / "again"
    code, out, _ = call(
        "run", "--spec", finished / "spec.json", "--out", there, "--inline", "--json"
    )
    assert (code, json.loads(out)["counts"]) == (0, {"ok": 2})
    assert {r.id for r in Store(there).records()} == {r.id for r in Store(finished).records()}
    assert json.loads((there / "spec.json").read_text()) == json.loads(
        (finished / "spec.json").read_text()
    )


WRONG_SPECS = {
    "odd": b'{"varaints": "dot"}',
    "list": b"[]",
    "words": b'{"seeds": "three"}',
    "flag": b'{"variants": "dot", "speed": 1}',
    "empty": b"{}",
    "none": b'{"variants": "", "preset": "smoke"}',
    "ablation": b'{"command": "ablate", "base": "dot"}',
    "comma": b'{"variants": "dot",,}',
    "bytes": b"\xff\xfe",
    "infinite": b'{"variants": "dot", "minutes": Infinity}',
    "nothing": b'{"variants": "dot", "quality": false, "speed": false}',
    "other": b'{"command": "rm"}',
    "claims": b'{"command": "claims", "keys": []}',
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run --spec {spec} --seeds 4", "leave out --seeds, or the spec."),
        ("run --spec {spec} --preset quick", "leave out --preset, or the spec."),
        ("run --spec {spec} --seeds 0 --variants all", "leave out --variants, --seeds, or the"),
        ("run --spec {spec} --no-speed --speed", "leave out --speed, or the spec."),
        ("run --spec {spec} --no-verify", "leave out --no-verify, or the spec."),
        ("run --spec {empty}", "is no spec of `bench run`: it names no variants"),
        ("run --spec {none}", "is no spec of `bench run`: it names no variants"),
        ("ablate --spec {ablation}", "is no spec of `bench ablate`: it names no axis"),
        ("run --spec {comma}", "is no JSON: line 1, column 20; give the spec.json"),
        ("run --spec {bytes}", "is no text; give the spec.json of a run folder"),
        ("run --spec {infinite}", "is no spec (Infinity is no number of JSON)"),
        ("run --spec {nothing}", "--no-quality and --no-speed leave nothing to do"),
        ("run --spec {other}", "is of the command 'rm', which takes no --spec"),
        ("run --spec {claims}", "is of the command 'claims', which takes no --spec"),
        ("study --spec {spec}", "run: python -m bench run --spec"),
        ("run --spec {odd}", "did you mean 'variants'"),
        ("run --spec {list}", "is no spec"),
        (
            "run --spec {words}",
            'seeds="three", and the default is 0; give a value of the same type',
        ),
        ("run --spec {flag}", "speed=1, and the default is true; give a value of the same type"),
    ],
)
def test_a_spec_that_does_not_fit_is_one_sentence(call, finished, tmp_path, arguments, said):
    paths = {"spec": finished / "spec.json"}
    for name, content in WRONG_SPECS.items():
        paths[name] = tmp_path / f"{name}.json"
        paths[name].write_bytes(content)
    code, out, err = call(*arguments.format(**paths).split())
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_spec_of_cells_needs_no_variants(call, finished, tmp_path):
    label, *_ = json.loads((finished / "plan.json").read_text())["cells"].values()
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"cells": [label], "preset": "smoke", "verify": False}))
    code, out, _ = call("run", "--spec", spec, "--out", tmp_path / "run", "--inline", "--json")
    assert (code, json.loads(out)["counts"]) == (0, {"ok": 1})


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        (1, "1 earlier command of this folder is not run again."),
        (2, "2 earlier commands of this folder are not run again."),
    ],
)
def test_a_spec_of_several_commands_says_that_the_last_is_run(
    call, finished, tmp_path, earlier, said
):
    asked = json.loads((finished / "spec.json").read_text())
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**asked, "earlier": [{"command": "run"}] * earlier}))
    words = ("run", "--spec", spec, "--out", finished, "--inline")
    code, out, err = call(*words, "--json")
    assert (code, json.loads(out)["counts"]) == (0, {})
    assert said in err
    assert "not run again" not in call("run", "--spec", finished / "spec.json", "--inline")[2]


def values(folder):
    return {
        record.id: [
            (row.metric, row.axis, row.x if row.axis != "cpu_s" else None, row.split, row.value)
            for row in record.rows
            if not row.metric.endswith(("_ms", "_s"))
        ]
        for record in Store(folder).records()
    }


def test_one_cell_is_reproduced_from_its_label(call, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {r.id: r for r in Store(finished).records()}
    for id_, record in before.items():
        label = json.loads((finished / "plan.json").read_text())["cells"][id_]
        assert parse_label(label).id == id_
        code, _, _ = call("run", "--cell", label, "--no-verify", "--inline")
        assert code == 0
        assert record.status == "ok"
    assert values(tmp_path / "runs" / "cells-quick") == values(finished)


def test_a_cell_that_is_too_small_to_be_ranked_stands_in_no_other_ones_way(
    call, finished, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    label, *_ = json.loads((finished / "plan.json").read_text())["cells"].values()
    words = ("run", "--cell", label, "--no-verify", "--inline")
    for more in (["--preset", "smoke"], []):  # the second as plans of the usual preset print it
        code, _, err = call(*words, *more)
        assert code == 0, err
    assert sorted(one.name for one in (tmp_path / "runs").iterdir()) == [
        "cells-quick",
        "cells-smoke",
    ]


def test_what_a_label_says_is_not_said_again(call, finished, tmp_path):
    label, *_ = json.loads((finished / "plan.json").read_text())["cells"].values()
    asked = ["run", "--cell", label, "--out", tmp_path / "run"]
    code, _, err = call(*asked, "--seeds", 3, "--variants", "uniform")
    assert code == 2
    assert "--cell already says what to run; leave out --variants, --seeds." in err
    code, _, err = call(*asked, "--no-quality", "--no-speed")
    assert code == 2
    assert "--cell already says what to run; leave out --no-quality, --no-speed." in err
    assert not (tmp_path / "run").exists()


def test_a_printed_command_names_the_preset_that_says_whether_scores_rank(finished):
    folder = read_folder(finished)
    label = folder.outcomes[0].cell.label
    assert shlex.split(folder.command(label))[-2:] == ["--preset", "smoke"]
    assert set(OTHER_COMMANDS) == set(KINDS) - RUN_KINDS
    for kind in OTHER_COMMANDS:
        assert folder.command(replace(parse_label(label), kind=kind).label) == ""


def test_cells_of_two_variants_that_begin_alike_have_two_names():
    both = plan(
        Request(variants="additive,additive[width=8]", tasks="after_marker", preset="smoke")
    )
    labels = tuple(one.cell.label for one in both.quality)
    named = cell_plan(RunOptions(cells=labels, preset="smoke")).variants
    assert {"additive", "additive[width=8]"} <= set(named)
    assert all(name == asked.text for name, asked in named.items())


def test_a_label_of_other_code_is_refused(call, finished):
    label, *_ = json.loads((finished / "plan.json").read_text())["cells"].values()
    code, _, err = call("run", "--cell", replace(parse_label(label), revisions="dot:7").label)
    assert code == 2
    assert "this label is of another revision of the code" in err


def test_refused_cells_alone_are_no_failure(call, tmp_path):
    asked = ["run", "--variants", "bahdanau", *SMOKE, "--out", tmp_path / "run"]
    code, out, _ = call(*asked)
    assert code == 0
    assert "1 ok, 1 refused" in out
    (record,) = [r for r in Store(tmp_path / "run").records() if r.status == "refused"]
    assert out.count(record.detail) == 1
    assert f"refused, 1 cell: {record.detail}" in out
    code, out, _ = call(*asked)
    assert "2 were finished before; 1 refused before; --retry refused asks it again" in out
    assert f"refused, 1 cell: {record.detail}" in out
    (reason,) = json.loads(call(*asked, "--json")[1])["reasons"]
    assert reason == {"status": "refused", "reason": record.detail, "cells": 1}


def test_what_ends_with_exit_code_one_can_be_chosen(call, tmp_path, trouble_plugin):
    refused = ["run", "--variants", "bahdanau", *SMOKE, "--out", tmp_path / "refused"]
    code, _, err = call(*refused, "--fail-on", "red,refused")
    assert code == 1
    assert "1 cell refused; the reasons are above." in err
    failed = ["run", "--variants", "raiser", *SMOKE, "--plugin", trouble_plugin]
    failed += ["--out", tmp_path / "failed"]
    assert call(*failed, "--fail-on", "none")[0] == 0
    code, _, err = call(*failed)
    assert code == 1
    log = tmp_path / "failed" / "log.txt"
    assert f"1 cell failed; {log} has the tracebacks, and --retry failed runs" in err
    code, _, err = call(*failed, "--fail-on", "faild")
    assert code == 2
    assert "no ending named 'faild'; did you mean 'failed'?" in err


def test_a_failed_cell_is_exit_code_one_also_when_it_failed_before(call, tmp_path, trouble_plugin):
    asked = ["run", "--variants", "raiser", *SMOKE, "--plugin", trouble_plugin]
    asked += ["--out", tmp_path / "run"]
    code, out, _ = call(*asked)
    assert code == 1
    assert "1 failed, 1 ok" in out
    assert "the score gave up" in (tmp_path / "run" / "log.txt").read_text()
    assert call(*asked)[0] == 1
    code, out, _ = call(*asked, "--retry", "failed")
    assert code == 1
    assert "1 failed, 1 was finished before" in out
    assert max(r.attempt for r in Store(tmp_path / "run").records()) == 2


def test_data_that_are_not_here_are_refused_rows_with_the_command_that_fetches_them(call, tmp_path):
    asked = ["run", "--variants", "luong_global,bahdanau", "--tasks", "translation"]
    asked += ["--preset", "smoke", "--no-speed", "--no-verify", "--inline"]
    code, out, err = call(*asked, "--out", tmp_path / "run")
    assert code == 1
    assert "3 cells refused; the reasons are above." in err
    assert "cells: 3 refused" in out
    for record in Store(tmp_path / "run").records():
        assert record.status == "refused"
        assert "python -m bench data fetch multi30k" in record.detail
    assert "python -m bench data fetch multi30k" in report_text(tmp_path / "run")


def test_a_run_goes_on_from_a_pack_and_trains_what_is_missing_alone(call, finished, tmp_path):
    pack, folder = tmp_path / "published.parquet", tmp_path / "run"
    assert call("report", finished, "--out", tmp_path / "report", "--pack", pack)[0] == 0
    before = {record.id: record for record in Store(finished).records()}
    asked = ("run", "--variants", "dot,general", *SMOKE, "--out", folder, "--reuse")
    code, _, err = call(*asked, tmp_path / "nowhere.parquet")
    assert code == 2
    assert "no pack at" in err
    assert not folder.exists()
    code, _, err = call(*asked, pack)
    assert code == 0
    assert f"{len(before)} finished cells from {pack}." in err
    after = {record.id: record for record in Store(folder).records()}
    assert {id_: after[id_] for id_ in before} == before
    new = {
        record.cell["variant"].partition("[")[0]
        for id_, record in after.items()
        if id_ not in before
    }
    assert new == {"general"}
    code, _, err = call(
        "run", "--variants", "none_state", *SMOKE, "--out", f"{folder}2", "--reuse", pack
    )
    assert code == 0
    assert "1 finished cell from" in err, "the baseline, and nothing that was not asked"
    assert not {"dot"} & {
        r.cell["variant"].partition("[")[0] for r in Store(f"{folder}2").records()
    }
    assert len(json.loads((tmp_path / "run2" / "plan.json").read_text())["cells"]) == 2


def test_a_run_says_which_lines_of_the_cells_that_it_reuses_were_lost(call, finished, tmp_path):
    source = shutil.copytree(finished, tmp_path / "source")
    (source / "ledger" / "x.jsonl").write_bytes(b"broken\n{")
    words = ("run", "--variants", "dot", *SMOKE, "--out", tmp_path / "run", "--reuse", source)
    code, _, err = call(*words)
    assert code == 0
    assert f"{source}: 1 unfinished last line of killed writers was left out" in err
    assert f"{source}: 1 line of the ledger cannot be read, the first is " in err


def test_a_red_certificate_of_a_variant_without_cells_ends_no_command(call, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    words = ("run", "--variants", "dot", *SMOKE, "--out", folder)
    for variant, expected in (("general", 0), ("dot", 1)):
        red = {variant: {"failed": {"oracle": "it is wrong."}}}
        (folder / "certificates.json").write_text(json.dumps(red))
        code, _, err = call(*words)
        assert (code, f"the certificate of {variant} is red" in err) == (expected, bool(expected))


def test_cells_that_may_be_ranked_do_not_go_beside_cells_that_may_not(call, finished):
    words = ["run", "--variants", "dot", "--tasks", "after_marker", "--preset", "demo"]
    before = (finished / "catalog.json").read_text()
    code, _, said = call(*words, "--no-speed", "--no-verify", "--inline", "--out", finished)
    assert code == 2
    assert "is a run of the preset smoke, and cells of smoke are too small to be ranked" in said
    assert (finished / "catalog.json").read_text() == before


def test_cells_of_a_run_are_trained_again_and_compared(call, finished, tmp_path):
    words = ["reproduce", finished, "--cells", 1, "--inline", "--out", tmp_path / "again"]
    code, out, _ = call(*words)
    assert code == 0
    assert "1 of 1 cells have the same test scores to the last bit." in out
    with Store(tmp_path / "again") as store:
        (record,) = store.ledger().newest().values()
        moved = [replace(row, value=row.value + 0.25) for row in record.rows]
        store.append(replace(record, rows=tuple(moved), attempt=2))
    code, out, err = call(*words)
    assert code == 1
    assert "the greatest difference of the others is 0.25" in out
    assert err.endswith("not reproduced: of 1 cells 1 differ by more than 0.\n")
    assert call(*words, "--tolerance", 0.3)[0] == 0


def test_a_cell_that_was_slow_before_is_given_as_long_and_asked_again(
    call, finished, tmp_path, monkeypatch
):
    label, *_ = json.loads((finished / "plan.json").read_text())["cells"].values()
    asked = RunOptions(cells=(label,), preset="smoke")
    assert cell_plan(asked, {label: 5000.0}).quality[0].seconds == 5000.0
    assert cell_plan(asked, {label: 0.5}).quality[0].seconds == 60.0
    assert 0 < cell_plan(asked).quality[0].seconds < 60.0, "the planner's figure"
    seen = []
    monkeypatch.setattr(
        execution, "execute", lambda options, made, **_: seen.append(options) or 130
    )
    call("reproduce", finished, "--cells", "1", "--out", tmp_path / "again")
    assert seen[0].retry == ("timeout",)


def test_no_retry_is_advised_where_none_can_be_given(call, finished, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("whatever")

    monkeypatch.setattr(runner, "train_cell", fail)
    code, _, err = call("reproduce", finished, "--cells", 1, "--inline", "--out", tmp_path / "a")
    assert code == 1
    assert "another --out runs them again." in err
    assert "--retry" not in err
    code, _, err = call("run", "--variants", "dot", *SMOKE, "--out", tmp_path / "b")
    assert code == 1
    assert "--retry failed runs them again." in err


@pytest.mark.parametrize("tolerance", ["nan", "-1", "inf"])
def test_a_tolerance_beyond_which_nothing_could_be_is_refused(call, tolerance):
    code, out, err = call("reproduce", "nowhere", f"--tolerance={tolerance}")
    assert (code, out) == (2, "")
    assert err.startswith("--tolerance must be a number of at least 0, got ")


def test_a_run_is_not_compared_with_itself(call, finished):
    code, out, err = call("reproduce", finished, "--out", finished / ".." / finished.name)
    assert (code, out) == (2, "")
    assert err.endswith(" is the run that is checked; give another --out.\n")


@pytest.mark.parametrize("how", ["reuse", "merge"])
def test_a_run_is_not_compared_with_copies_of_its_results(call, finished, tmp_path, how):
    again = tmp_path / "again"
    if how == "reuse":
        copied = call("run", "--variants", "dot", *SMOKE, "--reuse", finished, "--out", again)
    else:
        empty = Store.create(tmp_path / "empty").folder
        copied = call("report", finished, "--merge", empty, "--out", again)
    assert copied[0] == 0
    code, out, err = call("reproduce", finished, "--cells", 1, "--inline", "--out", again)
    assert (code, out) == (2, "")
    assert f"{again} holds 2 trained cells of the run that is checked" in err
    assert err.endswith("give another --out.\n")


def test_no_preset_is_advised_where_none_can_be_given(call, finished):
    code, _, err = call("demo", "--out", finished, "--inline")
    assert code == 2
    assert err.endswith("to be ranked beside others; give another --out.\n")


def test_a_run_that_trained_nothing_cannot_be_trained_again(call):
    code, _, said = call("reproduce", "results/published/serving.parquet")
    assert code == 2
    assert "no trained cell" in said


@pytest.mark.parametrize("name", PRESETS)
def test_a_run_goes_where_its_preset_says_unless_told(name):
    assert RunOptions(preset=name).folder == Path("runs") / name
    assert RunOptions(preset=name, out="x").folder == Path("x")


@pytest.mark.parametrize(
    ("kind", "where"), [("exact", "bench claims run"), ("trial", "bench study")]
)
def test_a_label_of_a_cell_that_no_run_has_says_where_it_comes_from(call, finished, kind, where):
    label, *_ = json.loads((finished / "plan.json").read_text())["cells"].values()
    code, _, err = call("run", "--cell", replace(parse_label(label), kind=kind).label)
    assert code == 2
    assert where in err


def test_a_run_of_which_nothing_is_left_says_what_to_do(call, tmp_path):
    folder = tmp_path / "run"
    code, _, said = call("run", "--preset", "families", "--variants", "kerple", "--out", folder)
    assert code == 2
    assert "no task of preset families compares it" in said
    assert "--variants kerple --tasks offset --preset families" in said
    assert not folder.exists()


@pytest.mark.parametrize("ended", [130, 1], ids=["interrupted", "full disk"])
def test_a_reproduction_that_was_stopped_says_nothing_of_a_result(
    call, finished, monkeypatch, tmp_path, ended
):
    monkeypatch.setattr(execution, "execute", lambda *_, **__: ended)
    code, out, said = call("reproduce", finished, "--cells", "1", "--out", tmp_path / "again")
    assert code == ended
    assert "not reproduced" not in out + said


TIMED = ["--preset", "smoke", "--no-quality", "--shape", "L=8", "--inline"]


def test_code_that_a_variant_lacks_is_refused_by_its_cells_and_not_red(call, tmp_path):
    folder = tmp_path / "run"
    code, out, err = call(
        "run", "--variants", "additive", "--impl", "sdpa", *TIMED, "--out", folder
    )
    assert code == 0
    assert out.count("impl=sdpa needs a dot-product score") == 1
    assert "leave --impl out: every variant has code of its own." in out
    assert "certificate of" not in err
    statuses = {(r.cell["variant"], r.cell["impl"]): r.status for r in Store(folder).records()}
    assert statuses == {("scaled_dot", "sdpa"): "ok", ("additive", "sdpa"): "refused"}
    assert [*json.loads((folder / "certificates.json").read_text())] == ["scaled_dot"]


@pytest.mark.slow
def test_a_red_certificate_ends_with_its_first_reason_and_the_command_that_shows_all(
    call, tmp_path, wrong_plugin
):
    asked = ["run", "--variants", "double", "--plugin", wrong_plugin, *TIMED]
    code, _, err = call(*asked, "--out", tmp_path / "run")
    assert code == 1
    (line,) = [line for line in err.splitlines() if "is red; it is not ranked. Reason 1 of" in line]
    assert "the certificate of double is red; it is not ranked. Reason 1 of " in line
    assert re.search(r" of \d+: \w+: .*\. This shows all: ", line)
    words = shlex.split(line.partition("This shows all: ")[2])
    assert words[:5] == ["python", "-m", "bench", "verify", "double"]
    assert words[5:] == ["--shape", "L=8", "--plugin", str(wrong_plugin)]


def test_what_cannot_be_timed_by_itself_gets_no_command_that_leaves_it_out_again(call, tmp_path):
    asked = ["--preset", "smoke", "--variants", "relation_aware"]
    code, _, said = call("run", *asked, "--no-quality", "--out", tmp_path / "run")
    assert code == 2
    assert said.endswith("; leave out --no-quality to train it.\n")
    assert "without the network around it\n" in call("plan", *asked)[1]
    more = ["run", "--variants", "relation_aware,dot", "--no-verify", *TIMED]
    assert call(*more, "--out", tmp_path / "run")[0] == 0
    assert "``" not in (tmp_path / "run" / "details.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_a_plan_leaves_out_has_its_reason_at_the_end_of_the_run(call, tmp_path):
    asked = ["run", "--variants", "dot,cla", "--preset", "smoke", "--no-verify", "--inline"]
    asked += ["--training", "adam[steps=2]", "--out", tmp_path / "run"]
    code, out, _ = call(*asked)
    assert code == 0
    assert "left out, speed of cla: its layers read each other" in out
    left = json.loads(call(*asked, "--json")[1])["left_out"]
    assert [one["label"] for one in left] == ["speed of cla"]


def test_layers_that_read_each_other_get_a_command_that_times_them(call, tmp_path):
    asked = ["--preset", "smoke", "--variants", "cla", "--no-quality", "--out", tmp_path / "run"]
    code, _, said = call("run", *asked)
    assert code == 2
    _, found, command = said.partition("python -m bench run ")
    assert found
    words = command.split()
    assert words[:2] == ["--variants", "cla"]
    assert call("run", *words, "--no-verify", "--out", tmp_path / "run")[0] == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--out", __file__), "holds something else; give a new or empty folder"),
        (("--reuse", "nowhere"), "no run folder at nowhere: it does not exist"),
        (("--data-dir", "/nowhere"), "/nowhere"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_before_names_are_loaded(
    call, monkeypatch, asked, said
):
    def not_yet(*_):
        raise AssertionError("names were loaded")

    monkeypatch.setattr(registered, "load_registry", not_yet)
    code, out, err = call("run", "--variants", "additive", *asked)
    assert (code, out) == (2, "")
    assert said in err


@pytest.fixture
def on_a_gpu(finished, tmp_path):
    """A copy of the finished run whose cells had a GPU and kept their models."""
    folder = shutil.copytree(finished, tmp_path / "gpu")
    for file in (folder / "ledger").iterdir():
        file.unlink()
    (folder / "models").mkdir()
    with Store(folder) as store:
        for record in Store(finished).records():
            cell = replace(cell_from_dict(dict(record.cell)), device="cuda")
            store.append(replace(record, cell=asdict(cell), id=cell.id))
            model_path(folder / "models", cell).write_bytes(b"weights")
    asked = {"variants": "dot", "tasks": "after_marker", "preset": "smoke", "device": "cuda"}
    (folder / "spec.json").write_text(json.dumps({**asked, "speed": False}))
    return folder


@pytest.mark.parametrize(("typed", "jobs"), [((), 1), (("--jobs", 0), 1), (("--jobs", 3), 3)])
@pytest.mark.parametrize("command", ["spec", "cell", "reproduce", "analyze"])
def test_cells_on_a_gpu_run_one_at_a_time_whoever_names_the_device(
    call, on_a_gpu, tmp_path, monkeypatch, command, typed, jobs
):
    label = cell_from_dict(dict(Store(on_a_gpu).records()[0].cell)).label
    words = {
        "spec": ["run", "--spec", on_a_gpu / "spec.json", "--out", tmp_path / "new"],
        "cell": ["run", "--cell", label, "--out", tmp_path / "new", "--preset", "smoke"],
        "reproduce": ["reproduce", on_a_gpu, "--out", tmp_path / "new"],
        "analyze": ["analyze", on_a_gpu],
    }
    seen = []

    def stop(options, store):
        seen.append(options.jobs)
        raise InvalidConfig("stopped on purpose.")

    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(devices, "refuse_missing_device", lambda _: None)
    monkeypatch.setattr(execution, "refuse_missing_device", lambda _: None)
    monkeypatch.setattr(execution, "make_session", stop)
    assert "stopped on purpose" in call(*words[command], *typed)[2]
    assert seen == [jobs]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--probes", "nothing"], "no probe named 'nothing'"),
        (["--reuse", "{finished}", "--preset", "demo"], "give another --reuse"),
        (["--out", "{finished}", "--preset", "demo"], "give another --out"),
    ],
)
def test_what_cannot_be_run_is_refused_before_networks_are_matched(
    call, finished, tmp_path, monkeypatch, asked, said
):
    def not_yet(*_):
        raise AssertionError("networks were matched")

    monkeypatch.setattr(matched_plan, "match_plan", not_yet)
    asked = [one.format(finished=finished) for one in asked]
    usual = [*SMOKE, "--match", "params", "--out", str(tmp_path / "run")]
    code, out, err = call("run", "--variants", "dot", *with_others(usual, *asked))
    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("reasons", "said"), [(20, ""), (21, "1 more reason is in the report.")])
def test_a_run_says_how_many_reasons_of_what_was_left_out_it_does_not_print(
    call, finished, tmp_path, reasons, said
):
    folder = shutil.copytree(finished, tmp_path / "run")
    stored = json.loads((folder / "plan.json").read_text())
    left = [{"label": f"part {n}", "reason": f"why {n}.", "command": ""} for n in range(reasons)]
    (folder / "plan.json").write_text(json.dumps({**stored, "left_out": left}))
    out = call("run", "--variants", "dot", *SMOKE, "--out", folder)[1]
    assert out.count("left out, part ") == 20
    assert ("more reason" in out) == bool(said)
    assert said in out


@pytest.mark.parametrize(
    "command", ["run", "study --tasks recall --variants dot", "ablate --base dot --axis score"]
)
def test_nothing_is_trusted_without_a_spec(call, command, tmp_path):
    code, out, err = call(*command.split(), "--trust", "--out", tmp_path / "run")
    assert (code, out) == (2, "")
    assert err == "--trust is for what a spec names; give --spec, or leave it out.\n"
    assert not (tmp_path / "run").exists()
