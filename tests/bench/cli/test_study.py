"""Studies on the command line: what is printed of them, counted and reported."""

import json

import pytest

from bench.training.protocol import read_protocol
from reports.curves import legend_of
from reports.folder import read_folder
from reports.sections import studies
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


def chosen(folder):
    """What a report shows of each study: its row without the variant, and its curve."""
    drawn = {}

    def spied(key, words, content, legend):
        drawn.update({line.name: line for panel in content for line in panel.lines})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "panels", spied)
        read = read_folder(folder)
        section = studies.study_section(read, legend_of(read))
    (table,) = section.blocks[2 if read.catalog.study else 1 :]
    rows = {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}
    return {name: (rows[name], drawn[name]) for name in rows}


def asked_of(variants, trials="4"):
    """The study of other variants, or with another number of trials."""
    other = {"additive": variants, "4": trials}
    return [other.get(one, one) for one in ASKED]


def of_rates(*values):
    """Score the trials of a study in the order in which they are asked, and new seeds alike."""
    known = {}

    def score(cell):
        rate = read_protocol(cell.protocol).lr
        if rate not in known:
            known[rate] = values[len(known)]
        return (known[rate],)

    return score


def test_a_study_that_goes_on_with_fewer_trials_shows_what_it_chose_everywhere(
    call, tmp_path, monkeypatch
):
    """The sentence, the table and the curve; the best of all that are stored is another trial."""
    folder = tmp_path / "run"
    asked = asked_of("linear_attention")
    with monkeypatch.context() as patch:
        pretend(patch, tmp_path / "cache", of_rates(0.2, 0.4, 0.1, 0.9))
        assert call(*asked, "--out", folder)[0] == 0
        assert chosen(folder)["linear_attention"][0][2:4] == ["0.900", "3"]
        code, out, err = call(*asked_of("linear_attention", trials="2"), "--out", folder)
    assert code == 0, err
    (told,) = [line for line in out.splitlines() if line.startswith("linear_attention: ")]
    assert told.startswith("linear_attention: trial 1 is the best of 2, with learning rate ")
    # the seeds of the first winner are another comparison of the same variant
    assert told.endswith("0.400 on validation, 0.400 on the test with 2 new seeds.")
    row, curve = chosen(folder)["linear_attention"]
    assert (row[0], row[2], row[3]) == ("2", "0.400", "1")
    rate = read_folder(folder).catalog.study["linear_attention"]["lr"]
    assert f"lr={rate!r}" in row[4]
    assert (curve.x, curve.y) == ((1.0, 2.0), (0.2, 0.4))


@pytest.mark.parametrize(
    ("variants", "trials"),
    [
        ("additive,additive[width=32]", {"additive": "4", "additive[width=32]": "2"}),
        # its fourth trial is that of the other study, too
        ("dpfp[shifts=1],dpfp", {"dpfp[shifts=1]": "4", "dpfp": "3"}),
    ],
)
def test_a_stopped_study_of_two_variants_of_one_name_shows_both(
    call, tmp_path, monkeypatch, variants, trials
):
    with monkeypatch.context() as patch:
        pretend(patch, tmp_path / "cache", scored, stop_after=6)
        assert call(*asked_of(variants), "--out", tmp_path / "run")[0] == 130
    assert call("report", tmp_path / "run")[0] == 0
    found = chosen(tmp_path / "run")
    assert {name: row[0] for name, (row, _) in found.items()} == trials


def test_the_report_of_trials_alone_says_so(study, call, tmp_path):
    study(stop_after=3)
    assert call("report", tmp_path / "run")[0] == 0
    page = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "3 trials of settings; nothing was trained with the best yet." in page


def test_a_former_winner_does_not_compete_with_the_one_of_more_trials(study, tmp_path, monkeypatch):
    found, asked = [], ASKED
    for trials in ("1", "8"):
        monkeypatch.setitem(globals(), "ASKED", [*asked[:8], trials, *asked[9:]])
        code, _, err = study()
        assert code == 0, err
        folder = read_folder(tmp_path / "run")
        (one,) = folder.comparisons
        found.append({*one.cells.seeds(folder.catalog.study["additive"]["variant"])})
        assert [*one.scores] == [folder.catalog.study["additive"]["variant"]]
    assert found[0] != found[1], "more trials found a better setting"
    former = folder.catalog.study["additive"]["former"]
    assert {*former} == found[0]
    assert study()[0] == 0, "and once more"
    assert read_folder(tmp_path / "run").catalog.study["additive"]["former"] == former


def test_a_winner_of_a_study_that_was_stopped_is_a_former_one_later(study, tmp_path, monkeypatch):
    asked = ASKED
    monkeypatch.setitem(globals(), "ASKED", [*asked[:8], "1", *asked[9:]])
    code, _, _ = study(stop_after=2)
    assert code == 130, "one trial and one of two fresh seeds"
    held = {*read_folder(tmp_path / "run").catalog.study["additive"]["finals"]}
    assert len(held) == 2
    monkeypatch.setitem(globals(), "ASKED", [*asked[:8], "8", *asked[9:]])
    assert study()[0] == 0
    folder = read_folder(tmp_path / "run")
    assert {*folder.catalog.study["additive"]["former"]} == held
    (one,) = folder.comparisons
    assert [*one.scores] == [folder.catalog.study["additive"]["variant"]]


def test_fewer_fresh_seeds_of_the_same_winner_take_none_away(study, tmp_path, monkeypatch):
    assert study()[0] == 0
    before = read_folder(tmp_path / "run")
    fewer = [*ASKED[:10], "1", *ASKED[11:]]
    assert ASKED[9:11] == ["--final-seeds", "2"]
    monkeypatch.setitem(globals(), "ASKED", fewer)
    assert study()[0] == 0
    after = read_folder(tmp_path / "run")
    assert "former" not in after.catalog.study["additive"]
    assert after.comparisons[0].scores == before.comparisons[0].scores
