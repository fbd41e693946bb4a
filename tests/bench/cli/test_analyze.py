"""Probes of the models of a run."""

import shutil

import pytest

from bench.api.cell import cell_from_dict
from bench.api.command import EXAMPLES
from bench.training.analysis import model_path
from results.store import Store
from tests.bench.cli.command_lines import report_text


def test_weights_that_cannot_be_loaded_are_refused_and_lost_ones_are_told(call, tmp_path):
    folder = tmp_path / "run"
    asked = ["run", "--variants", "additive", "--tasks", "transduction", "--preset", "smoke"]
    asked += ["--training", "adam[steps=2]", "--no-speed", "--no-verify", "--inline"]
    assert call(*asked, "--out", folder)[0] == 0
    code, _, err = call(*asked, "--keep-models", "--out", folder)
    assert code == 0
    assert "warning: this folder has no weights of 2 cells: they were trained without --keep" in err
    kept = tmp_path / "kept"
    code, _, err = call(*asked, "--keep-models", "--out", kept)
    assert code == 0
    assert "without --keep-models" not in err
    for model in (kept / "models").iterdir():
        model.write_bytes(b"no weights")
    call("analyze", kept, "--inline", "--probes", "blur")
    details = [r.detail for r in Store(kept).records() if r.cell["kind"] == "analysis"]
    assert len(details) == 2
    for said in details:
        assert "cannot be loaded" in said
        assert "delete the file, and train the cell with --keep-models into another --out." in said


def test_a_number_of_examples_is_refused_before_anything_is_written(call, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    model = model_path(folder / "models", cell_from_dict(dict(Store(folder).records()[0].cell)))
    model.parent.mkdir()
    model.write_bytes(b"weights")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, out, err = call("analyze", folder, "--inline", "--probes", "blur", "--examples", 0)
    assert (code, out) == (2, "")
    assert "examples must be at least 1, got 0." in err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("command", ["analyze", "run", "ablate"])
def test_the_help_says_that_probes_look_at_the_shortest_examples(call, command):
    said = " ".join(call(command, "--help")[1].split())
    assert ("so these are the shortest" if command == "analyze" else "are the shortest") in said
    assert str(EXAMPLES) in said


@pytest.mark.slow
def test_probes_look_at_the_models_of_a_run_and_their_rows_stand_in_the_report(call, tmp_path):
    folder = tmp_path / "run"
    asked = "--variants additive,none_state --tasks transduction --preset smoke --no-speed"
    asked += " --training adam[steps=2]"
    place = f"--no-verify --inline --out {folder}"
    code, _, err = call("run", *asked.split(), *place.split())
    assert code == 0, err
    code, _, err = call("analyze", folder, "--inline")
    assert code == 2
    assert "no models" in err
    again = f"{place}2 --probes blur"
    code, _, err = call("run", *asked.split(), *again.split())
    assert code == 0, err
    records = [r for r in Store(tmp_path / "run2").records() if r.cell["kind"] == "analysis"]
    assert sorted(r.status for r in records) == ["ok", "ok", "refused"]
    (refused,) = (r for r in records if r.status == "refused")
    assert "no attention weights" in refused.detail
    report = report_text(tmp_path / "run2")
    assert "## What the attention does" in report
    assert "Effective number of keys" in report
    code, _, err = call("analyze", f"{folder}2", "--inline", "--probes", "blur")
    assert code == 0, err
    assert len([*Store(tmp_path / "run2").records()]) == len(records) + 3  # nothing ran again
    code, _, err = call("analyze", f"{folder}2", "--probes", "blurr")
    assert code == 2
    assert "did you mean 'blur'" in err
    call("analyze", f"{folder}2", "--inline", "--probes", "blur")
    code, _, err = call(
        "analyze", f"{folder}2", "--inline", "--probes", "blur", "--retry", "refused"
    )
    assert code == 0, err
    newest = Store(tmp_path / "run2").ledger().newest()[refused.id]
    assert newest.attempt > refused.attempt, "what was refused ran again"
    code, out, err = call("analyze", f"{folder}2", "--inline", "--probes", "erasure")
    assert code == 0, err
    assert "erasure on transduction @ additive seed 0" in err
    lines = [line.split() for line in out.splitlines()]
    task = "transduction[rule=reverse]"
    assert any(line[:3] == [task, "erasure", "additive"] for line in lines)
    assert "to baseline" not in out
    head = (tmp_path / "run2" / "report.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert head.count("python -m bench analyze") == 3
    assert head.index("python -m bench run") < head.index("python -m bench analyze")
    label = cell_from_dict(dict(refused.cell)).label
    code, out, err = call("run", "--cell", label, *place.split()[:2], "--out", tmp_path / "run3")
    assert code == 0, err
    assert "1 ok, 1 refused" in out
