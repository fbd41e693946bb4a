"""Studies on the command line: what is printed of them, counted and reported."""

import json

import pytest

from bench.training.protocol import read_protocol
from tests.bench.cli.pretended import pretend

ASKED = ["study", "--variants", "additive", "--tasks", "transduction[rule=copy]"]
ASKED += ["--preset", "smoke", "--trials", "4", "--final-seeds", "2", "--jobs", "2"]
CHOSEN = (
    "additive: trial 0 is the best of 4, with learning rate 0.00376, additive width 253 and "
    "softmax temperature 1.61. Correct prefix beyond training: 0.942 on validation, "
    "0.902 (0.892–0.912) on the test with 2 new seeds."
)


def scored(cell):
    """The nearer the learning rate is to 0.003 the better; new seeds score less than seed 0."""
    rate = read_protocol(cell.protocol).lr
    return (0.95 - 10 * abs(rate - 0.003) - 0.05 * (cell.seed > 0) + 0.02 * (cell.seed % 2),)


@pytest.fixture
def study(call, tmp_path, monkeypatch):
    """`study(*more, stop_after)` -> (exit code, standard output, standard error)."""

    def run(*more, stop_after=None):
        with monkeypatch.context() as patch:
            pretend(patch, tmp_path / "cache", scored, stop_after)
            return call(*ASKED, "--out", tmp_path / "run", *more)

    return run


def test_a_study_says_what_it_chose_and_counts_each_cell_once(study, tmp_path):
    code, _, err = study(stop_after=3)
    assert code == 130
    assert "3 finished cells are saved" in err
    code, out, err = study()
    assert code == 0
    assert CHOSEN in out.splitlines()
    assert "cells: 3 ok, 3 were finished before" in out.splitlines()
    assert "transduction[rule=copy] @ additive tuned seed 1000 " in err
    page = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "**Cells** 6 with values" in page


def test_trials_are_told_by_the_settings_that_they_try_with_few_digits(study):
    _, _, err = study()
    tried = "additive[normalizer=softmax[temperature=1.61],width=253] seed 0 trial lr=0.00376 "
    assert f"transduction[rule=copy] @ {tried}" in err


def test_the_report_counts_variants_and_not_what_was_tried(study, tmp_path):
    study()
    page = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "1 variant on 1 task, 1 comparison, with quality" in page
    assert "Settings were tried in 4 trials." in page
    assert "**Baseline** none" in page
    assert "scaled_dot" not in page
    details = (tmp_path / "run" / "details.md").read_text(encoding="utf-8")
    assert f"- {CHOSEN}" in details
    certificates = details.partition("## Certificates")[2].partition("\n## ")[0]
    rows = [line for line in certificates.splitlines() if line.startswith("| additive")]
    assert rows == ["| additive tuned | green | 1 | — | — |"]
    # it has no competitor, so no line stands in the table of comparisons
    assert "Best mean of each task" not in details
    assert "Variants without a competitor in their network" in details


def test_json_has_the_exact_settings(study):
    told = json.loads(study("--json")[1])["studies"]["additive"]
    assert told["lr"] == pytest.approx(0.0037562, rel=1e-4)
    assert told["variant"] == (
        f"additive[normalizer=softmax[temperature={told['softmax.temperature']}],width=253]"
    )


def test_a_study_takes_no_baseline_from_the_folder_of_a_run(study, call, tmp_path, monkeypatch):
    run = ["run", "--variants", "general", "--baseline", "dot", *ASKED[3:7], "--no-speed"]
    with monkeypatch.context() as patch:
        pretend(patch, tmp_path / "cache", scored)
        assert call(*run, "--out", tmp_path / "run")[0] == 0
    study()
    page = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "**Baseline** dot" in page


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (["--sampler", "tpe"], "holds a study with sampler='random', and this one has "),
        (["--training", "adam[lr=0.01]"], "with training='', and this one has training='adam"),
    ],
)
def test_another_question_needs_a_folder_of_its_own(study, tmp_path, changed, complaint):
    study()
    before = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    code, _, err = study(*changed)
    assert code == 2
    assert complaint in err
    assert "give another --out" in err
    assert (tmp_path / "run" / "report.md").read_text(encoding="utf-8") == before


def test_more_variants_with_more_trials_join_the_study_of_a_folder(
    call, study, tmp_path, monkeypatch
):
    study()
    more = ["additive,dot" if one == "additive" else one for one in ASKED]
    with monkeypatch.context() as patch:
        pretend(patch, tmp_path / "cache", scored)
        code, out, err = call(*more, "--out", tmp_path / "run")
    assert code == 0, err
    assert {line.partition(":")[0] for line in out.splitlines()} >= {"additive", "dot"}


def test_the_report_of_trials_alone_says_so(study, call, tmp_path):
    study(stop_after=3)
    assert call("report", tmp_path / "run")[0] == 0
    page = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "3 trials of settings; nothing was trained with the best yet." in page
