"""The sentence and the choice table say what the statistics say, and no more."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from synthetic import BASE, VARIANTS
from synthetic_levels import (
    DECIDED,
    NEW,
    NOTHING,
    OTHER,
    TIED,
    UNIFORM,
    written,
)
from synthetic_run import write_json, write_run

from reports import evidence
from reports.blocks import NO_VALUE, Column, TableBlock, TableCell
from reports.choices import ABOUT_PARTS, MOST_ROWS, NONE_YET, _cost, choices_table, other_needs
from reports.evidence import evidence_text
from reports.folder import RunFolder, read_folder
from reports.markdown import table_text
from reports.needs import needs
from reports.quality_cost import of_each_use, quality_cost
from reports.ranked_table.comparison import Comparison
from reports.render import render
from reports.result_sentence import headline
from reports.sections.all_tasks import _place, all_tasks_section
from reports.terminal import choices_text, result_text
from reports.training_cost import CostNoise


def rows(folder: RunFolder) -> list[dict[str, TableCell]]:
    table = choices_table(folder)
    assert table is not None
    titles = [column.title for column in table.columns]
    return [dict(zip(titles, row, strict=True)) for row in table.rows]


def texts(folder: RunFolder) -> list[dict[str, str]]:
    return [{title: cell.text for title, cell in row.items()} for row in rows(folder)]


def test_a_significantly_better_variant_is_chosen_with_its_evidence_and_cost(tmp_path: Path):
    folder = written(tmp_path / "run", {"copying": DECIDED}, steps={NEW: 22.0})
    (row,) = texts(folder)
    assert row == {
        "Use": "Use of copying",
        "Test": "copying",
        "Variant": "shaw_rpr",
        "Score": "Token accuracy 0.9013 ± 0.0038",
        "Compared with": "0.5013 ± 0.0038 of bahdanau",
        "p": "< 0.001",
        "Seeds": "3",
        "Non-neural baseline": NO_VALUE,
        "Tied with": NO_VALUE,
        "Cost of a step": "2.2× (2.2–2.2)",
    }
    assert headline(folder) == (
        "One choice is significantly better than bahdanau: shaw_rpr on copying (token accuracy "
        "0.9013 ± 0.0038 against 0.5013 ± 0.0038, 3 seeds)."
    )


def test_of_tied_variants_the_cheaper_one_is_chosen_and_the_sentence_says_why(tmp_path: Path):
    tasks = {"copying": DECIDED, "sorting": TIED, "recall": TIED}
    folder = written(tmp_path / "run", tasks, steps={OTHER: 5.0})
    assert [row["Variant"] for row in texts(folder)] == ["shaw_rpr", "scaled_dot", "scaled_dot"]
    assert headline(folder).endswith(
        "In the other 2 uses at this size scaled_dot and bahdanau are tied with the best. Of "
        "the two, scaled_dot is the cheaper."
    )


@pytest.mark.parametrize(
    ("count", "marks"),
    [(1090.0, ()), (1300.0, ("+30 % parameters",)), (500.0, ("-50 % parameters",))],
)
def test_a_choice_of_another_size_says_so(tmp_path: Path, count: float, marks: tuple[str, ...]):
    sizes = {BASE: 1000.0, NEW: count}
    folder = written(tmp_path / "run", {"copying": DECIDED}, parameters=sizes)
    (row,) = rows(folder)
    assert (row["Variant"].text, row["Variant"].marks) == ("shaw_rpr", marks)


def test_variants_that_no_rule_tells_apart_are_counted(tmp_path: Path):
    equal = {BASE: 0.5, NEW: 0.9, OTHER: 0.9, UNIFORM: 0.3}
    folder = written(tmp_path / "run", {"copying": equal})
    (need,) = needs(folder)
    assert {need.variant, *need.alike} == {NEW, OTHER}
    (row,) = rows(folder)
    other = folder.catalog.label(need.alike[0])
    assert row["Variant"].marks == (f"equal to {other} by all rules",)
    assert f"3 seeds; equal to {other} by all rules)." in headline(folder)
    cheaper = written(tmp_path / "cheaper", {"copying": equal}, steps={OTHER: 5.0})
    (need,) = needs(cheaper)
    assert (need.variant, need.alike) == (OTHER, [])


def test_where_nothing_is_above_uniform_attention_none_is_named(tmp_path: Path):
    tasks = {"copying": NOTHING, "sorting": TIED}
    folder = written(tmp_path / "run", tasks, without={"copying": 0.75})
    (_, row) = texts(folder)
    assert (row["Variant"], row["Score"], row["p"]) == (NONE_YET, NO_VALUE, NO_VALUE)
    assert row["Compared with"].endswith(" of no_attention")
    assert row["Non-neural baseline"] == "0.750 (naive Bayes)"
    assert row["Cost of a step"] == NO_VALUE
    told = evidence_text(next(need for need in needs(folder) if need.is_open))
    assert told.startswith("no variant is significantly above no_attention, which has ")
    assert told.endswith("non-neural baseline 0.750 (naive Bayes)")
    told = headline(folder)
    assert told.startswith("No variant is significantly better than bahdanau.")
    assert "For use of sorting at this size" in told
    assert told.endswith("No variant is significantly above uniform attention for use of copying.")


def test_without_uniform_attention_the_sentence_says_what_the_run_does_not_tell(tmp_path: Path):
    alone = {name: score for name, score in TIED.items() if name != UNIFORM}
    assert headline(written(tmp_path / "run", {"sorting": alone})).endswith(
        "Uniform attention was not run, so nothing says whether the attention learned anything."
    )
    both = {"sorting": alone, "copying": TIED}
    assert "was not run" not in headline(written(tmp_path / "both", both))


def test_a_test_on_which_something_is_above_uniform_attention_goes_before_others(tmp_path: Path):
    tasks = {"copying": NOTHING, "sorting": TIED, "recall": NOTHING}
    folder = written(tmp_path / "run", tasks, family="the one use")
    (need,) = needs(folder)
    assert need.evidence.task == "sorting"
    assert not need.is_open


def test_a_variant_of_the_larger_test_goes_before_a_cheaper_one_of_a_smaller_test(tmp_path: Path):
    two = {BASE: 0.5, OTHER: 0.9, UNIFORM: 0.3}
    three = {BASE: 0.5, NEW: 0.9, OTHER: 0.6, UNIFORM: 0.3}
    tasks = {"copying": two, "sorting": three}
    folder = written(tmp_path / "run", tasks, family="the one use", steps={OTHER: 5.0})
    (need,) = needs(folder)
    assert {*need.candidates} == {NEW, OTHER}
    assert (need.variant, need.evidence.task) == (NEW, "sorting")
    (row,) = rows(folder)
    assert row["Variant"].marks[0] == "by rule 4"


def test_a_row_shows_a_test_on_which_the_choice_is_better_than_the_baseline(tmp_path: Path):
    """A larger one, on which the baseline is tied with it, says less than the rule that chose."""
    small = {BASE: 0.5, NEW: 0.9, UNIFORM: 0.3}
    large = {BASE: 0.9, NEW: 0.9, OTHER: 0.9, UNIFORM: 0.3}
    folder = written(tmp_path / "run", {"copying": small, "sorting": large}, family="the one use")
    (need,) = needs(folder)
    assert (need.variant, need.evidence.task, need.beats_baseline) == (NEW, "copying", True)
    (row,) = rows(folder)
    assert row["Variant"].marks[0] == "by rule 1"


def test_networks_of_a_few_parameters_are_told_by_their_counts(tmp_path: Path):
    sizes = {BASE: 1.0, NEW: 2.0}
    (row,) = rows(written(tmp_path / "run", {"copying": DECIDED}, parameters=sizes))
    assert row["Variant"].marks == ("network of 2 parameters, that of the baseline 1",)


def test_few_tied_variants_are_named_and_many_are_counted(tmp_path: Path, monkeypatch):
    equal = {BASE: 0.9, NEW: 0.9, OTHER: 0.9, UNIFORM: 0.3}
    folder = written(tmp_path / "run", {"copying": equal})
    (row,) = texts(folder)
    others = [name for name in ("bahdanau", "shaw_rpr", "scaled_dot") if name != row["Variant"]]
    assert all(name in row["Tied with"] for name in others)
    monkeypatch.setattr(evidence, "MOST_TIED", 1)
    (row,) = texts(written(tmp_path / "second", {"copying": equal}))
    assert "other" in row["Tied with"]


def test_the_row_shows_the_test_with_most_variants_whatever_its_p(tmp_path: Path):
    small = {BASE: 0.1, NEW: 0.9, UNIFORM: 0.05}
    large = {BASE: 0.88, NEW: 0.9, OTHER: 0.6, UNIFORM: 0.3}
    folder = written(tmp_path / "run", {"copying": small, "sorting": large}, family="the one use")
    (need,) = needs(folder)
    on = {one.task: one.p_better(NEW, BASE) for one in need.comparisons}
    assert need.variant == NEW
    assert on["copying"] < on["sorting"]
    assert need.evidence.task == "sorting"


def test_a_non_neural_baseline_is_named_whether_it_is_better_or_not(tmp_path: Path):
    tasks = {"copying": DECIDED, "sorting": DECIDED}
    level = {"copying": 0.901, "sorting": 0.899}
    folder = written(tmp_path / "run", tasks, without=level)
    found = {row["Use"]: row["Non-neural baseline"] for row in texts(folder)}
    assert found == {
        "Use of copying": "0.901 (naive Bayes)",
        "Use of sorting": "0.899 (naive Bayes)",
    }


def test_of_tied_variants_one_above_the_non_neural_baseline_in_every_seed_is_chosen(tmp_path: Path):
    levels = {BASE: 0.50, NEW: 0.900, OTHER: 0.9005, UNIFORM: 0.30}
    folder = written(tmp_path / "run", {"copying": levels}, steps={OTHER: 22.0})
    assert [row["Variant"] for row in texts(folder)] == ["shaw_rpr"]
    folder = written(
        tmp_path / "second", {"copying": levels}, steps={OTHER: 22.0}, without={"copying": 0.9002}
    )
    assert [row["Variant"] for row in texts(folder)] == ["scaled_dot"]


def test_the_test_is_described_and_ties_are_counted(tmp_path: Path):
    tasks = {"copying": TIED, "sorting": TIED}
    folder = written(tmp_path / "run", tasks, family="the one use")
    table = choices_table(folder)
    assert table is not None
    (row,) = rows(folder)
    assert row["Test"].marks == ("1 of 2 tests, 2 variants",)
    assert row["Tied with"].text == "scaled_dot (0.9018 ± 0.0038)"
    assert table.notes[0].startswith("Tests: generated test copying, “")
    assert table.notes[1].startswith("How a variant is chosen: ")


def test_a_better_mean_that_costs_more_is_named_with_that_reason(tmp_path: Path):
    folder = written(tmp_path / "run", {"copying": TIED}, steps={OTHER: 30.0})
    (row,) = texts(folder)
    assert row["Variant"] == "bahdanau"
    assert row["Tied with"] == "scaled_dot (0.9018 ± 0.0038, which costs more)"


def test_it_is_said_where_the_baseline_has_no_positions(tmp_path: Path):
    folder = written(tmp_path / "run", {"copying": DECIDED}, positions=(NEW,))
    assert rows(folder)[0]["Compared with"].marks == ("which has no positions",)
    assert "of bahdanau without positions, 3 seeds)" in headline(folder)
    both = written(tmp_path / "both", {"copying": DECIDED}, positions=(NEW, BASE))
    assert rows(both)[0]["Compared with"].marks == ()


def test_it_is_said_where_the_baseline_is_not_above_uniform_attention(tmp_path: Path):
    untaught = {BASE: 0.3005, NEW: 0.90, UNIFORM: 0.30}
    tasks = {"copying": untaught, "sorting": {**DECIDED, NEW: 0.8}}
    found = rows(written(tmp_path / "run", tasks))
    assert [row["Test"].text for row in found] == ["sorting", "copying"]
    marks = [row["Compared with"].marks for row in found]
    assert marks == [(), ("which is not above uniform attention",)]


@pytest.mark.parametrize(
    ("base", "mark"),
    [
        (0.95, "after training 0.9953 ± 0.0038 against 0.9513 ± 0.0038"),
        (0.9942, "after training 0.9953 ± 0.0038 against 0.9955 ± 0.0038, n.s."),
    ],
    ids=["apart", "alike"],
)
def test_a_choice_by_an_area_says_how_it_stands_after_training(
    base: float, mark: str, tmp_path: Path
):
    ended = {BASE: base, NEW: 0.994, UNIFORM: 0.3}
    folder = written(tmp_path / "run", {"copying": DECIDED}, ended=ended)
    assert rows(folder)[0]["Compared with"].marks == (mark,)


def test_one_seed_chooses_nothing(tmp_path: Path):
    run = written(tmp_path / "run", {"copying": DECIDED})
    records = [one.record for one in run.outcomes if one.cell.seed == 0]
    folder = read_folder(write_run(tmp_path / "one", records=records, tasks=["copying"]))
    assert choices_table(folder) is None
    assert "One seed each" in headline(folder)


def test_a_preset_that_ranks_nothing_chooses_nothing(tmp_path: Path):
    folder = written(tmp_path / "run", {"copying": DECIDED}, ranks=False)
    assert choices_table(folder) is None
    assert quality_cost(folder) is None
    assert "too small to choose" in headline(folder)


def test_many_uses_fill_twelve_rows_at_most_and_none_is_lost(tmp_path: Path):
    tasks = {f"d{at}": DECIDED for at in range(13)} | {f"t{at}": TIED for at in range(4)}
    folder = written(tmp_path / "run", tasks | {"n0": NOTHING, "n1": NOTHING})
    table, others = choices_table(folder), other_needs(folder)
    assert table is not None
    assert others is not None
    assert len(table.rows) == MOST_ROWS
    shown = [row[0].text for row in (*table.rows[:-2], *others.rows)]
    assert len(shown) == len({*shown}) == len(tasks) + 2
    assert table.rows[-2][0].text == "4 other uses"
    assert table.rows[-1][0].text == "2 other uses"
    assert table.rows[-2][3].text == (
        "No choice is significantly better than bahdanau, which is tied with the best in 4 of 4 "
        "uses. The choices are in the table “A choice for each of the other uses”"
    )
    assert "better also for use of d7, use of d8 and use of d9" in " ".join(table.notes)


def test_a_use_that_is_alone_in_its_group_has_one_row_and_no_second(tmp_path: Path):
    tasks = {f"d{at}": DECIDED for at in range(13)} | {"t0": TIED, "n0": NOTHING}
    folder = written(tmp_path / "run", tasks)
    table, others = choices_table(folder), other_needs(folder)
    assert table is not None
    assert others is not None
    shown = [row[0].text for row in (*table.rows, *others.rows)]
    assert len(shown) == len({*shown}) == len(tasks)
    assert [row[0].text for row in table.rows[-2:]] == ["Use of t0", "Use of n0"]


def test_where_the_whole_test_is_solved_its_harder_part_decides(tmp_path: Path):
    far = {BASE: {16: 0.99, 64: 0.40}, NEW: {16: 0.99, 64: 0.80}, UNIFORM: {16: 0.3, 64: 0.2}}
    solved = {BASE: 0.996, NEW: 0.996, UNIFORM: 0.30}
    folder = written(tmp_path / "run", {"copying": solved}, by_length=far)
    (need,) = needs(folder)
    assert need.evidence.part == "length 64"
    assert need.beats_baseline
    assert rows(folder)[0]["Test"].marks == ("length 64", "2 variants")
    table = choices_table(folder)
    assert table is not None
    assert ABOUT_PARTS in table.notes
    (whole,) = folder.comparisons
    assert whole.part == ""
    assert whole.means[NEW].estimate > 0.99


def test_points_stay_in_the_range_of_the_metric_and_the_front_is_marked(tmp_path: Path):
    levels = {BASE: 0.90, OTHER: 0.9965, NEW: 0.95, UNIFORM: 0.30}  # and 0.003 more at most
    folder = written(tmp_path / "run", {"copying": levels}, steps={OTHER: 9.0, UNIFORM: 1.0})
    data = quality_cost(folder)
    assert data is not None
    least, greatest = data.limits
    for point in data.points:
        assert least <= point.low <= point.quality <= point.high <= greatest
    (near,) = [point for point in data.points if point.name == "scaled_dot"]
    # its interval would go beyond 1, so that the seeds are shown and not an end that was cut off
    assert (near.low, near.high) == pytest.approx((0.9965, 0.9995))
    front = {point.name for point in data.points if point.on_front}
    assert front == {"scaled_dot"}  # a control is never on it
    kinds = {point.name: point.kind for point in data.points}
    assert (kinds["bahdanau"], kinds["no_attention"]) == ("baseline", "uniform")


def test_the_summary_counts_significant_wins_and_tests_the_signs_of_means(tmp_path: Path):
    tasks = {f"d{at}": {**DECIDED, OTHER: 0.7, "luong_general": 0.6} for at in range(6)}
    section = all_tasks_section(written(tmp_path / "run", tasks))
    assert section is not None
    (table,) = section.blocks[1:]
    rows = {row[0].text: [cell.text for cell in row] for row in table.rows}  # type: ignore[union-attr]  # the table
    assert rows["shaw_rpr"][1:5] == ["6", "1.0 of 5.0", "6–0–0", "6 of 6, 0.031"]
    assert rows["no_attention"][3] == "0–0–6"


def test_a_sign_test_of_few_uses_is_left_out(tmp_path: Path):
    tasks = {f"d{at}": {**DECIDED, OTHER: 0.7, "luong_general": 0.6} for at in range(5)}
    section = all_tasks_section(written(tmp_path / "run", tasks))
    assert section is not None
    (table,) = section.blocks[1:]
    assert "Sign test" not in [column.title for column in table.columns]  # type: ignore[union-attr]  # the table


def test_many_tasks_of_one_use_count_once(tmp_path: Path):
    """Four tasks of one use put a variant first, and one task of another puts it behind."""
    good = {**DECIDED, OTHER: 0.7, "luong_general": 0.6}
    bad = {**good, NEW: 0.4}
    folder = written(tmp_path / "run", {**{f"d{at}": good for at in range(4)}, "e": bad}).path
    catalog = json.loads((folder / "catalog.json").read_text())
    for at in range(4):
        catalog["tasks"][f"d{at}"]["family"] = "Use of d"
    write_json(folder / "catalog.json", catalog)
    section = all_tasks_section(read_folder(folder))
    assert section is not None
    (table,) = section.blocks[1:]
    assert isinstance(table, TableBlock)
    titles = [column.title for column in table.columns]
    (row,) = [one for one in table.rows if one[0].text == "shaw_rpr"]
    assert row[titles.index("Mean rank")].text == "2.5 of 5.0", "1 and 4, not 1, 1, 1, 1 and 4"
    assert row[titles.index("Against bahdanau")].text == "1–0–1", "of uses, not of comparisons"
    assert row[len(titles) - 1].text == "5 of 2 uses"


def test_two_uses_that_share_networks_count_as_one(tmp_path: Path):
    levels = {**DECIDED, OTHER: 0.7, "luong_general": 0.6}
    folder = written(tmp_path / "run", {f"d{at}": levels for at in range(3)}).path
    catalog = json.loads((folder / "catalog.json").read_text())
    catalog["tasks"]["d1"]["counts_with"] = catalog["tasks"]["d0"]["family"]
    write_json(folder / "catalog.json", catalog)
    run = read_folder(folder)
    assert [len(group) for group in of_each_use(run.comparisons)] == [2, 1]
    assert len(needs(run)) == 3, "each is a use to choose for"
    section = all_tasks_section(run)
    assert section is not None
    (table,) = section.blocks[1:]
    assert isinstance(table, TableBlock)
    (row,) = [one for one in table.rows if one[0].text == "shaw_rpr"]
    assert row[3].text == "2–0–0"


def test_there_is_no_summary_of_one_contender(tmp_path: Path):
    section = all_tasks_section(written(tmp_path / "run", {f"d{at}": DECIDED for at in range(4)}))
    assert section is not None
    (told,) = section.blocks
    # all of its variants are in all of its tasks
    assert told.text == (  # type: ignore[union-attr]  # a paragraph
        "There is no summary over all tasks: only 1 contender took part in at least 3 tasks beside "
        "bahdanau. Read each task by itself."
    )
    one_task = all_tasks_section(written(tmp_path / "other", {"d": DECIDED}))
    assert one_task is None


@pytest.mark.slow
def test_the_short_markdown_of_a_large_run_has_at_most_200_lines(tmp_path: Path):
    able = [name for name in VARIANTS if not VARIANTS[name].red]
    # more than the 40 rows of the longest table, of variants and of tasks
    few = {NEW: 0.9, BASE: 0.5, UNIFORM: 0.3}
    tasks = {f"task{at}": few for at in range(1, 45)}
    tasks["task0"] = dict.fromkeys(able[:60], 0.5) | few
    folder = written(
        tmp_path / "run", tasks, commands=[f"python -m bench run {at}" for at in range(60)]
    )
    report = render(folder.path)
    short = report.markdown.read_text(encoding="utf-8").splitlines()
    assert len(short) <= 200
    assert "details.md" in "\n".join(short)
    assert "### task44" in report.details.read_text(encoding="utf-8")


def test_rows_that_are_left_out_are_told_with_what_they_count() -> None:
    columns = (Column(title="Task"), Column(title="Tested", counts="hypotheses"))
    rows = [(TableCell(text=f"t{at}"), TableCell(text=str(at), sort=at)) for at in range(5)]
    table = TableBlock(key="k", title="Decisions", columns=columns, rows=tuple(rows))
    assert "3 more rows with 9 hypotheses: in" in table_text(table, 2)
    plain = replace(table, columns=(columns[0], Column(title="Tested")))
    assert "3 more rows: in" in table_text(plain, 2)
    assert "more row" not in table_text(table)


def test_a_use_without_a_choice_says_how_many_are_worse_than_uniform_attention(tmp_path: Path):
    levels = {NEW: 0.2, BASE: 0.5, OTHER: 0.5, UNIFORM: 0.5}
    folder = written(tmp_path / "run", {"copying": levels})
    (row,) = rows(folder)
    assert row["Variant"].text == NONE_YET
    assert row["Compared with"].marks == ("1 of 3 is significantly worse",)
    assert row["Tied with"].text == NO_VALUE
    (need,) = needs(folder)
    assert "; 1 of 3 is significantly worse" in evidence_text(need)


def test_the_choice_table_stays_within_the_width_of_the_terminal(tmp_path: Path):
    tasks = {"copying_of_" + "long" * 12: DECIDED, "sorting": TIED}
    folder = written(tmp_path / "run", tasks)
    table = choices_table(folder)
    assert table is not None
    for width in (40, 60, 80, 120):
        assert max(map(len, choices_text(table, width).splitlines())) <= width
    assert "shaw_rpr" in result_text(folder, 80)


def test_a_cost_that_one_task_lacks_is_that_of_the_other_tasks_of_the_use(tmp_path: Path):
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": TIED}, steps={NEW: 12.0})
    timed, untimed = folder.comparisons
    noise = CostNoise(1.1)
    cost = "1.20× (1.20–1.20)"
    assert _cost([timed], NEW, noise) == TableCell(text=cost)
    assert _cost([untimed], NEW, noise).text == NO_VALUE
    assert _cost([untimed], NEW, noise, [untimed, timed]) == TableCell(
        text=cost, marks=("on other tasks",)
    )


def test_a_diagnostic_task_stands_for_itself(tmp_path: Path):
    tasks = {"copying": DECIDED, "sorting": DECIDED}
    found = needs(written(tmp_path / "run", tasks, family="diagnostics"))
    assert [need.title for need in found] == ["diagnostic test copying", "diagnostic test sorting"]


def test_equal_means_share_their_places() -> None:
    means = {
        name: SimpleNamespace(estimate=value)
        for name, value in zip("abcd", (1, 1, 1, 0), strict=True)
    }
    comparison = cast(Comparison, SimpleNamespace(compared=dict.fromkeys("abcd"), means=means))
    assert [_place(comparison, name) for name in "abcd"] == [2.0, 2.0, 2.0, 4.0]
