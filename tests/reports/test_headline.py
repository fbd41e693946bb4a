"""Where a score is saturated, the ranked table ranks by what is not: one place decides."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.blocks import Paragraph, TableBlock
from reports.choices import choices_table
from reports.export import export_tables
from reports.folder import RunFolder, read_folder
from reports.needs import needs
from reports.ranked_table.headline import headline_of
from reports.ranked_table.steps_to_threshold import STEPS as STEPS_METRIC
from reports.ranked_table.terminal import as_text
from reports.ranked_table.verdicts import planned_text
from reports.sections.findings import _task, findings_section
from reports.sections.ranking import use_sections
from reports.sections.uses_of_attention import verdict
from results.row import Row

TASK, METRIC, UNIFORM = "copying", "token_accuracy", "no_attention"
FAST, SLOW = "shaw_rpr[clip=16]", "scaled_dot"
SOLVED = 0.996
WORSE = {FAST: SOLVED, BASE: SOLVED, SLOW: 0.5, UNIFORM: 0.3}
"""Two of three contenders are saturated, which is not nearly all of them."""
LEVELS = {FAST: SOLVED, UNIFORM: 0.30, BASE: SOLVED, SLOW: SOLVED}
STEPS: Mapping[str, Sequence[int]] = {
    FAST: (100, 105, 103),
    BASE: (400, 403, 401),
    SLOW: (700, 702, 705),
}


def written(
    path: Path,
    steps: Mapping[str, Sequence[int]] = STEPS,
    levels: Mapping[str, float] = LEVELS,
    far: Mapping[str, float] | None = None,
    metric: str = METRIC,
) -> RunFolder:
    """A run whose seeds reach the threshold at given steps, and never where no step is given."""
    known = catalog()
    known["variants"][UNIFORM]["control"] = "uniform_baseline"  # type: ignore[index]  # a plain dictionary
    one = next(iter(known["tasks"].values()))  # type: ignore[union-attr]  # a plain dictionary
    known["tasks"] = {TASK: {**one, "short": TASK, "primary": metric, "family": "copying"}}
    known["metrics"][metric] = known["metrics"][METRIC]  # type: ignore[index]  # a plain dictionary
    records = []
    for at, (variant, level) in enumerate(levels.items()):
        for seed in range(3):
            value = level + 0.001 * ((seed + at) % 3)
            rows = [
                Row(metric=metric, value=value, split="validation"),
                Row(metric=metric, value=value, split="test"),
            ]
            if steps:
                reached = [*steps.get(variant, ())][seed : seed + 1]
                curve = {50: 0.2, **dict.fromkeys(reached, SOLVED)}
                rows += [
                    Row(metric=metric, value=height, split="validation", axis="step", x=float(x))
                    for x, height in curve.items()
                ]
            if far is not None:
                rows.append(
                    Row(metric=metric, value=far[variant] + 0.001 * ((seed + at) % 3),
                        split="test", axis="length", x=64.0)
                )  # fmt: skip
            records.append(record(quality_cell(TASK, variant, seed), "ok", rows))
    return read_folder(write_run(path, records=records, catalog_data=known, tasks=[TASK]))


def table_of(folder: RunFolder) -> TableBlock:
    blocks = [block for section in use_sections(folder) for block in section.blocks]
    return next(block for block in blocks if isinstance(block, TableBlock))


def said_below(folder: RunFolder) -> str:
    blocks = [block for section in use_sections(folder) for block in section.blocks]
    return " ".join(block.text for block in blocks if isinstance(block, Paragraph))


def test_steps_to_the_threshold_rank_where_nearly_all_are_saturated(tmp_path: Path):
    folder = written(tmp_path / "run")
    shown = folder.headlines["comparison-1"]
    assert shown.means[FAST].estimate == pytest.approx(308 / 3)
    assert shown.means[FAST].low < 308 / 3 < shown.means[FAST].high
    assert (shown.ranked_by.unit, shown.better) == ("steps", "lower")
    assert [line.variant for line in shown.ranking] == [FAST, BASE, SLOW]
    table = table_of(folder)
    assert table.title == "copying: steps to token accuracy 0.99"
    rows = {row[1].text: [cell.text for cell in row] for row in table.rows}
    assert rows["shaw_rpr"][0] == "1"
    assert rows["shaw_rpr"][2] == "102.7 ± 6.3"
    assert rows["shaw_rpr"][3].startswith("-298.7 ± ")
    heads = [column.title for column in table.columns]
    plain = heads.index("Token accuracy ↑")
    assert table.columns[plain].unit == "whole test"
    assert rows["shaw_rpr"][plain] == "0.9970 ± 0.0025"


def test_outcomes_stay_those_of_the_planned_tests_where_the_table_shows_another_metric(tmp_path):
    """By steps it is far better, and that was looked for after the scores were seen."""
    folder = written(tmp_path / "run")
    (whole,) = folder.comparisons
    lines = folder.ranked_lines.set_index("selector")
    assert folder.headlines["comparison-1"].compared[FAST].better_than_baseline
    assert lines.loc[FAST, "verdict"] == planned_text(whole, FAST, BASE) != "better"
    decision = whole.compared[FAST].against_baseline
    assert decision is not None
    assert lines.loc[FAST, "p_adjusted"] == decision.p_adjusted
    assert lines.loc[FAST, "difference"] == pytest.approx(-299, abs=1)
    assert "those of the planned tests, which are of the whole test" in said_below(folder)
    blocks = [block for block in findings_section(folder).blocks if isinstance(block, Paragraph)]
    assert not any("Significantly better" in block.text for block in blocks)


def test_who_never_reaches_the_threshold_is_last_without_a_rank_and_named(tmp_path: Path):
    folder = written(tmp_path / "run")
    table = table_of(folder)
    assert [cell.text for cell in table.rows[-1]][:3] == ["—", "no_attention", "not reached"]
    assert "Never reached by no_attention." in said_below(folder)
    assert "steps are known no finer" in said_below(folder)


def test_a_variant_that_failed_in_one_seed_is_not_ranked_by_its_lucky_ones(tmp_path: Path):
    folder = written(tmp_path / "run", {**STEPS, SLOW: (40, 41)})
    shown = folder.headlines["comparison-1"]
    assert SLOW not in shown.compared
    rows = {row[1].text: row[2].text for row in table_of(folder).rows}
    assert rows["scaled_dot"] == "reached by 2 of 3 seeds"
    assert [row[1].text for row in table_of(folder).rows] == [
        "shaw_rpr",
        "bahdanau",
        "scaled_dot",
        "no_attention",
    ]
    assert "Not ranked, because some seeds never reached it: scaled_dot" in said_below(folder)


def test_without_curves_the_score_stays_and_one_sentence_says_why(tmp_path: Path):
    folder = written(tmp_path / "run", {})
    assert folder.headlines["comparison-1"] is folder.comparisons[0]
    assert table_of(folder).title == "copying: token accuracy"
    assert "because no learning curve is stored." in said_below(folder)


def test_where_the_baseline_never_reaches_it_the_score_stays(tmp_path: Path):
    folder = written(tmp_path / "run", {FAST: STEPS[FAST], SLOW: STEPS[SLOW]})
    (comparison,) = folder.comparisons
    assert headline_of(comparison) is comparison


def test_a_score_that_separates_stays(tmp_path: Path):
    folder = written(tmp_path / "run", levels=WORSE)
    assert folder.headlines["comparison-1"].plain is None
    assert "saturated" not in said_below(folder)


def test_a_harder_part_comes_before_steps(tmp_path: Path):
    folder = written(tmp_path / "run", far={FAST: 0.8, BASE: 0.5, SLOW: 0.4, UNIFORM: 0.2})
    shown = folder.headlines["comparison-1"]
    assert shown.part == "length 64"
    assert table_of(folder).title == "copying, length 64: token accuracy"
    assert "the table ranks by length 64" in said_below(folder)


def test_a_metric_that_the_task_declared_ranks_however_the_scores_look(tmp_path: Path):
    far = {FAST: 0.8, BASE: 0.5, SLOW: 0.4, UNIFORM: 0.2}
    folder = written(tmp_path / "run", far=far, metric="beyond_training_token_accuracy")
    shown = folder.headlines["comparison-1"]
    assert (shown.plain, shown.part) == (None, "")
    assert "declared this metric before the run" in said_below(folder)


def test_choices_findings_and_terminal_speak_of_the_same_steps(tmp_path: Path):
    folder = written(tmp_path / "run")
    (need,) = needs(folder)
    assert need.variant == FAST
    assert need.beats_baseline
    assert need.beats_uniform  # by the score of the whole test, which uniform attention has
    table = choices_table(folder)
    assert table is not None
    score, against = (cell.text for cell in table.rows[0][3:5])
    assert score == "102.7 ± 6.3 steps to token accuracy 0.99, validated every 655 steps"
    assert against.startswith("401.3 ± 3.8 of")
    assert "steps_to_threshold_count" in as_text(folder.ranked_lines)
    section = findings_section(folder)
    assert section is not None
    assert "102.7 ± 6.3 steps" in str(section.blocks)
    assert "no_attention (which does not reach the threshold)" in verdict(
        folder.headlines["comparison-1"]
    )


def test_a_part_where_nothing_beats_uniform_attention_is_too_hard_to_rank_by(tmp_path: Path):
    far = {FAST: 0.0062, BASE: 0.006, SLOW: 0.006, UNIFORM: 0.006}
    folder = written(tmp_path / "run", far=far)
    assert folder.headlines["comparison-1"].part == ""


def test_the_order_of_ranks_is_that_of_steps_and_not_of_the_plain_score(tmp_path: Path):
    levels = {SLOW: 0.9965, UNIFORM: 0.3, BASE: 0.996, FAST: 0.9955}
    rows = table_of(written(tmp_path / "run", levels=levels)).rows
    assert [row[1].text for row in rows] == ["shaw_rpr", "bahdanau", "scaled_dot", "no_attention"]


def test_without_uniform_attention_no_part_ranks_for_nothing_says_what_was_learned(tmp_path: Path):
    alone = {name: level for name, level in LEVELS.items() if name != UNIFORM}
    far = {FAST: 0.0062, BASE: 0.006, SLOW: 0.0061}
    shown = written(tmp_path / "run", levels=alone, far=far).headlines["comparison-1"]
    assert (shown.part, shown.metric) == ("", STEPS_METRIC)
    whole = written(tmp_path / "whole", {}, levels=alone, far=far)
    assert whole.headlines["comparison-1"] is whole.comparisons[0]
    table = choices_table(whole)
    assert table is not None
    assert not any("the hardest part of the test" in note for note in table.notes)


def test_findings_beside_steps_speak_of_all_that_has_a_score(tmp_path: Path):
    """The worse variant never reached the threshold, and is no hole."""
    levels = {FAST: SOLVED, BASE: SOLVED, SLOW: SOLVED, "luong_general": 0.2, UNIFORM: 0.3}
    folder = written(tmp_path / "run", levels=levels)
    shown = folder.headlines["comparison-1"]
    assert shown.metric == STEPS_METRIC
    assert not {"luong_general", UNIFORM} & shown.scores.keys()
    told = _task(shown)
    assert "Significantly worse: no_attention and luong_general." in told
    assert "Did not train (no seed above no_attention on validation)" in told
    assert "Without a score" not in told


@pytest.mark.parametrize("far", [None, {FAST: 0.8, BASE: 0.5, SLOW: 0.4, UNIFORM: 0.2}])
def test_what_is_exported_has_the_columns_of_the_page(
    tmp_path: Path, far: Mapping[str, float] | None
):
    """The score of the whole test stands beside steps or a part, and so does what a test finds."""
    folder = written(tmp_path / "run", far=far)
    written_files = export_tables(folder.path, tmp_path / "tables")
    (path,) = [one for one in written_files if one.name == "ranked.csv"]
    lines = pd.read_csv(path).set_index("selector")
    (whole,) = folder.comparisons
    assert folder.headlines["comparison-1"].plain is whole
    assert {*lines["whole_metric"]} == {METRIC}
    for name, mean in whole.means.items():
        shown = lines.loc[name, ["whole_score", "whole_score_low", "whole_score_high"]]
        assert [*shown] == pytest.approx([mean.estimate, mean.low, mean.high])
    decision = whole.compared[FAST].against_baseline
    assert decision is not None
    assert lines.loc[FAST, "detectable_difference"] == pytest.approx(decision.detectable)
    assert math.isnan(lines.loc[BASE, "detectable_difference"])


def test_a_table_by_the_plain_score_exports_no_other(tmp_path: Path):
    folder = written(tmp_path / "run", levels=WORSE)
    assert {*folder.ranked_lines["whole_metric"]} == {""}
    assert folder.ranked_lines["whole_score"].isna().all()
