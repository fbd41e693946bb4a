"""What stands beside scores, and tasks by family."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_families import DIGITS, REVERSAL, TRANSLATION, write_families
from synthetic_levels import DECIDED, written
from synthetic_run import markdown_of, write_run

from reports.export import export_tables
from reports.folder import RunFolder, read_folder
from reports.needs import _below_non_neural
from reports.ranked_table.comparison import Comparison
from reports.render import RenderedReport, render
from reports.sections.agreement import AgreementLine, _answer
from reports.sections.reference_scores import without_sentence
from reports.sections.uses_of_attention import verdict
from results.frame import curve
from results.row import Row
from results.statistics import Agreement


@pytest.fixture(scope="module")
def folder(families: Path) -> RunFolder:
    return read_folder(families)


@pytest.fixture(scope="module")
def text(families_report: RenderedReport) -> str:
    return markdown_of(families_report)


def test_values_of_non_neural_baselines_change_no_score_and_no_curve(folder: RunFolder) -> None:
    frame = folder.frame
    assert (frame["baseline"] != "").any()
    plain = frame[frame["baseline"] == ""]
    for comparison in folder.comparisons:
        rows = plain[(plain["task"] == comparison.task) & (plain["split"] == "test")]
        mine = rows[(rows["variant"] == BASE) & (rows["metric"] == comparison.metric)]
        assert sorted(comparison.scores.get(BASE, {}).values()) == sorted(mine["value"])
        for axis in ("step", "cpu_s", "length"):
            assert curve(frame, comparison.metric, axis).empty


def test_values_of_non_neural_baselines_stand_below_the_table(text: str) -> None:
    assert "Non-neural baseline: copy the source 0.400, majority 0.250 (fraction)." in text
    # 6 contenders: the red one and the control are none
    assert "Better than copy the source in every seed: 6 of 6 variants." in text


def test_the_rule_of_the_data_is_a_ceiling_and_no_competitor(tmp_path: Path) -> None:
    def comparison(level: float) -> tuple[Comparison, str]:
        path = tmp_path / str(level)
        folder = written(path, {"copying": DECIDED}, without={"copying": level})
        known = folder.catalog
        one = replace(known.task("copying"), rule_baseline="naive Bayes", ceiling=1.0)
        known.tasks = {"copying": one}
        (found,) = folder.comparisons
        return found, without_sentence(found)

    found, told = comparison(1.0)
    assert found.ceiling == "naive Bayes"
    assert told.endswith(
        "naive Bayes is the rule by which the data are made, which nothing can beat, so it is a "
        "ceiling and not a competitor."
    )
    assert not any(_below_non_neural(found, name) for name in found.contenders)
    missed, told = comparison(0.99)
    assert missed.ceiling == "", "a rule that is not learned whole can be beaten"
    assert "Better than naive Bayes in every seed: 0 of 2 variants." in told
    assert all(_below_non_neural(missed, name) for name in missed.contenders)


def test_one_bad_seed_is_enough_not_to_be_better_in_every_seed(tmp_path: Path) -> None:
    records = []
    for seed, value in enumerate((0.9, 0.1)):
        rows = [Row(metric="token_accuracy", value=value, split="test")]
        rows.append(Row(metric="token_accuracy", value=0.5, split="test", baseline="majority"))
        records.append(record(quality_cell(REVERSAL, BASE, seed), "ok", rows))
    run = read_folder(write_run(tmp_path / "run", records=records, tasks=[REVERSAL]))
    assert run.comparisons[0].beats_the_rest == []
    assert "0 of 1 variant." in markdown_of(render(run.path))


def test_published_numbers_have_their_source_and_no_rank(text: str) -> None:
    head, _, rest = text.partition("### Published numbers: translation")
    assert "26.8" not in head
    assert "[Bahdanau et al., 2015](https://arxiv.org/abs/1409.0473) | Table 1" in rest
    assert "Other languages and 400 times as many sentences." in rest
    assert "These numbers are not comparable with the table above" in rest


def test_a_published_number_says_which_options_it_is_about(text: str, tmp_path: Path) -> None:
    rest = text.partition("### Published numbers: translation")[2]
    head = next(line for line in rest.splitlines() if line.startswith("| What |"))
    row = next(line for line in rest.splitlines() if "Bahdanau et al., 2015" in line)
    assert "| How it differs | Options that it is about |" in head
    assert r"| translation\[pair=de-en\] |" in row
    # earlier runs did not write it down
    folder = write_families(tmp_path / "run", seeds=1)
    catalog = folder / "catalog.json"
    names = json.loads(catalog.read_text(encoding="utf-8"))
    (published_result,) = names["tasks"][TRANSLATION]["published_results"]
    del published_result["about"]
    catalog.write_text(json.dumps(names), encoding="utf-8")
    text = markdown_of(render(folder))
    assert "How it differs" in text
    assert "Options that it is about" not in text


def test_a_published_number_appears_once_a_task(text: str) -> None:
    assert text.count("### Published numbers") == 1


def test_each_family_has_its_section(text: str) -> None:
    heads = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    shown = heads[heads.index("Diagnostics") :][:4]
    assert shown == ["Diagnostics", "Image captioning", "Kernel regression", "Machine translation"]
    assert "Tasks: recall (generated data); reversal (generated data)." in text
    assert "Task: translation (real data; terms: non-commercial (Multi30k))." in text
    assert "Task: digits (real data, ship with a library; terms: BSD (scikit-learn))." in text


def test_the_table_of_families_stands_before_them(text: str) -> None:
    table = text.partition("## All comparisons")[2].partition("\n## ")[0]
    row = next(line for line in table.splitlines() if "| reversal *" in line)
    assert "| reversal *(generated)* *(Token accuracy ↑)* | shaw_rpr |" in row
    assert "copy the source 0.400" in row
    assert "better than no_attention and bahdanau" in row
    assert "Scores of all variants" not in text


def test_a_verdict_admits_one_seed(tmp_path: Path) -> None:
    run = read_folder(write_families(tmp_path / "run", seeds=1))
    assert {verdict(comparison) for comparison in run.comparisons} == {
        "one seed: no test is possible"
    }


def test_a_run_without_families_has_none(markdown: str) -> None:
    assert "All comparisons" not in markdown
    assert "## Scores of all variants" in markdown
    assert "## Ranking\n" in markdown


def test_tables_of_non_neural_baselines_are_exported(families: Path, tmp_path: Path) -> None:
    written = {path.name for path in export_tables(families, tmp_path)}
    assert {
        "baselines.csv",
        "baselines.tex",
        "published_results.csv",
        "published_results.tex",
    } <= written
    with (tmp_path / "baselines.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["baseline"] for line in lines if line["task"] == "reversal"] == [
        "copy the source",
        "majority",
    ]
    with (tmp_path / "published_results.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["value"] for line in lines] == ["26.75"]
    assert [line["about"] for line in lines] == ["translation[pair=de-en]"]


def test_runs_without_them_export_no_such_tables(demo: Path, tmp_path: Path) -> None:
    written = {path.name for path in export_tables(demo, tmp_path)}
    assert not {"baselines.csv", "published_results.csv"} & written


def test_tasks_are_generated_or_real(folder: RunFolder) -> None:
    assert folder.catalog.is_generated(REVERSAL)
    assert not folder.catalog.is_generated(TRANSLATION)
    assert not folder.catalog.is_generated(DIGITS)
    assert catalog()["tasks"]  # the other run has no family at all


def test_diagnostics_are_correlated_with_real_tasks(text: str) -> None:
    part = text.partition("## Which diagnostics predict tasks on real data")[2].partition("\n## ")[
        0
    ]
    assert "Holm's correction over all 2 pairs of the table" in part
    rows = [line for line in part.splitlines() if line.startswith(("| recall", "| reversal"))]
    assert len([row for row in rows if "| translation |" in row and "[" in row]) == 2
    # a better loss is a lower one, so the order is the same on both
    assert re.search(r"\| recall \| translation \| 7 \| (0\.[6-9]\d|1\.00) \\\[", part)


def comparison(title: str) -> Comparison:
    return cast(Comparison, SimpleNamespace(title=title))


def pair(one: str, other: str, correlation: float, p: float) -> tuple[AgreementLine, float]:
    found = Agreement(correlation=correlation, low=-1, high=1, p=p, variants=7)
    return (comparison(one), comparison(other), found), p


def test_the_section_says_in_words_which_diagnostics_predict_what() -> None:
    nothing = [pair(f"diagnostic {at}", "imdb", -0.2, 0.9) for at in range(31)]
    shown = pair("oov_copy", "django", 0.9, 0.049)
    assert _answer([shown, *nothing]) == (
        "Significant agreement: oov_copy for django. The other 31 pairs are n.s."
    )
    more = [
        shown,
        pair("recall", "imdb", 0.9, 0.01),
        pair("oov_copy", "aeslc", 0.8, 0.02),
        pair("chains", "imdb", -0.9, 0.03),
        pair("chains", "aeslc", 0.99, 0.05),
    ]
    assert _answer(more) == (
        "Significant agreement: oov_copy for django and aeslc; recall for imdb. "
        "Significant opposite order: chains for imdb. "
        "The other pair is n.s."
    )


def test_the_section_says_so_where_no_diagnostic_predicts_anything() -> None:
    nothing = [pair("recall", "imdb", 0.3, 0.4), pair("chains", "imdb", 0.8, 0.06)]
    assert _answer(nothing) == (
        "No diagnostic agrees significantly with a task on real data. The 2 pairs are n.s."
    )
    against = [pair("chains", "imdb", -0.8, 0.04)]
    assert _answer(against) == (
        "No diagnostic agrees significantly with a task on real data. "
        "Significant opposite order: chains for imdb."
    )


def test_the_answer_is_that_of_the_table(text: str) -> None:
    part = text.partition("## Which diagnostics predict tasks on real data")[2].partition("\n## ")[
        0
    ]
    rows = [line.split(" | ") for line in part.splitlines() if " | translation | " in line]
    for name, _, _, _, p, *_ in rows:
        small = p.startswith("&lt;") or float(p.strip(" |")) < 0.05
        answer = part.strip().splitlines()[0]
        assert (f"{name.removeprefix('| ')} for translation" in answer) == small, (answer, p)


def test_pairs_with_few_shared_variants_are_counted(text: str) -> None:
    assert "4 further pairs of a diagnostic and a task on real data have no number" in text
    assert "This concerns 3 diagnostics." in text
    assert "| recall | digits | 3 |" not in text


def test_runs_without_diagnostics_have_no_such_section(markdown: str) -> None:
    assert "Which diagnostics predict" not in markdown


def test_a_non_neural_baseline_keeps_to_the_range_of_its_metric(tmp_path: Path) -> None:
    records = []
    for seed, level in enumerate((0.02, 0.0, 0.1)):
        rows = [Row(metric="token_accuracy", value=0.9, split="test")]
        rows.append(Row(metric="token_accuracy", value=level, split="test", baseline="majority"))
        records.append(record(quality_cell(REVERSAL, BASE, seed), "ok", rows))
    run = read_folder(write_run(tmp_path / "run", records=records, tasks=[REVERSAL]))
    told = without_sentence(run.comparisons[0])  # its t interval goes down to -0.09
    shown = "majority 0.0400 (0.000–0.100, 3 seeds) (fraction)"
    assert told.startswith(f"Non-neural baseline: {shown}.")
