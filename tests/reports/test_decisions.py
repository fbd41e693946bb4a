"""What was decided: counts of primary hypotheses, and what is no evidence."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats
from synthetic_levels import BASE, DECIDED, NEW, OTHER, TIED, UNIFORM, of_seeds, written
from synthetic_run import markdown_of

from reports import tested
from reports.blocks import NO_VALUE, Bullets, TableBlock, TableCell
from reports.evidence import evidence_text
from reports.folder import RunFolder
from reports.needs import beats, needs
from reports.ranked_table.marks import legend_of_marks, marks
from reports.ranked_table.verdicts import (
    AT_EDGE,
    decision_counts,
    planned,
    planned_text,
    verdict_help,
    verdict_text,
)
from reports.render import render
from reports.result_sentence import headline
from reports.sections.data_sources import NO_EVIDENCE, caveats
from reports.sections.decisions import decisions_section, left_out, scope
from reports.sections.decisions_table import MARGIN_HELP, _detectable
from reports.sections.findings import _overall, _task
from reports.sections.uses_of_attention import verdict
from results.statistics import MOST_SEEDS, Hypothesis


def checked(folder: RunFolder, task: str, why: str) -> RunFolder:
    """The same run, in which a task is a pipeline check."""
    known = folder.catalog
    known.tasks = {**known.tasks, task: replace(known.task(task), pipeline_check=why)}
    return folder


def test_the_table_counts_how_primary_hypotheses_ended(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": TIED})
    section = decisions_section(folder)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    heads = [f"{column.title} {column.unit}".strip() for column in table.columns]
    rows = {row[0].text: dict(zip(heads, row, strict=True)) for row in table.rows}
    # shaw against the baseline and against uniform, the baseline against uniform
    shown = ("Tested", "Against bahdanau", "Against no_attention")
    assert [rows["copying"][head].text for head in shown] == ["3", "1 better", "2 better"]
    # without a margin in its catalog, a run can show no equivalence
    assert [rows["sorting"][head].text for head in shown] == ["3", "1 undecided", "2 better"]
    text = render(folder.path).markdown.read_text(encoding="utf-8")
    assert (
        "The run decides 5 of 6 primary hypotheses (83%) in 2 comparisons: 1 of 2 against bahdanau "
        "and 4 of 4 against uniform attention."
    ) in text
    assert "Against bahdanau: 1 better, 0 worse, 0 equivalent, 1 undecided." in text
    assert "Against uniform attention: 4 better, 0 worse, 0 equivalent, 0 undecided." in text
    assert "At least one hypothesis is decided in 2 of 2 comparisons, all of them in 1." in text


def test_a_margin_in_the_catalog_lets_a_run_show_that_two_are_equivalent(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"sorting": TIED})
    metrics = folder.catalog.metrics
    folder.catalog.metrics = {name: replace(one, margin=0.05) for name, one in metrics.items()}
    (comparison,) = folder.comparisons
    assert decision_counts(comparison)["equivalent"] == 1
    line = comparison.compared["scaled_dot"]
    assert verdict_text(line.against_baseline) == "equivalent"


def test_what_is_open_says_how_many_seeds_would_decide(tmp_path: Path) -> None:
    close = {BASE: 0.50, NEW: 0.503, UNIFORM: 0.30}
    (comparison,) = written(tmp_path / "run", {"copying": close}).comparisons
    decision = comparison.compared[NEW].against_baseline
    text = verdict_text(decision)
    assert text.startswith("undecided (about ")
    assert text.endswith(" seeds)")
    never = replace(decision, seeds_to_decide=None)
    assert verdict_text(never) == f"undecided (more than {MOST_SEEDS} seeds)"


def test_a_pipeline_check_is_in_no_summary_and_is_named_with_its_reason(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": DECIDED})
    folder = checked(folder, "sorting", "Counts win in every seed.")
    assert [need.title for need in needs(folder)] == ["use of copying"]
    section = decisions_section(folder)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    assert [row[0].text for row in table.rows] == ["copying"]
    (named,) = [block for block in section.blocks if isinstance(block, Bullets)]
    assert named.items == (
        "sorting: Counts win in every seed. In this run, of 2 variants, 2 are significantly "
        "above uniform attention. A mark is not lifted after scores were seen.",
    )
    assert (
        "Of 2 comparisons, 1 is a pipeline check and 1 is tested; these last are counted here. "
        "The run decides 3 of 3 primary hypotheses"
    ) in section.blocks[1].text  # type: ignore[union-attr]  # a paragraph
    assert scope(folder).endswith("2 comparisons, of which 1 is a pipeline check and 1 is tested")


def test_what_is_equivalent_because_both_have_the_best_score_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"sorting": {BASE: 0.996, OTHER: 0.9955, UNIFORM: 0.30}})
    metrics = folder.catalog.metrics
    bounded = {name: replace(one, margin=0.05, low=0.0, high=1.0) for name, one in metrics.items()}
    folder.catalog.metrics = bounded
    (comparison,) = folder.comparisons
    assert planned_text(comparison, OTHER, comparison.baseline) == "equivalent at the ceiling"
    assert decision_counts(comparison)[AT_EDGE] == 1
    low = written(tmp_path / "low", {"sorting": {BASE: 0.102, OTHER: 0.101, UNIFORM: 0.1}})
    low.catalog.metrics = bounded
    low.catalog.tasks = {"sorting": replace(low.catalog.task("sorting"), chance=0.1)}
    (comparison,) = low.comparisons
    assert planned_text(comparison, OTHER, comparison.baseline) == "equivalent at chance"


def test_a_control_that_nothing_was_planned_about_has_no_verdict(tmp_path: Path) -> None:
    levels = {BASE: 0.5, NEW: 0.9, OTHER: 0.501, UNIFORM: 0.30}
    folder = written(tmp_path / "run", {"copying": levels})
    known = folder.catalog
    known.variants = {**known.variants, OTHER: replace(known.variant(OTHER), control="aa")}
    (comparison,) = folder.comparisons
    assert planned(comparison, OTHER, BASE) is None
    assert planned_text(comparison, OTHER, BASE) == ""
    assert planned_text(comparison, UNIFORM, BASE) == "worse"
    assert planned_text(comparison, BASE, UNIFORM) == "better"


def test_a_tie_of_ranks_that_the_planned_test_denies_is_marked_everywhere(tmp_path: Path) -> None:
    # many pairs make the correction of ranks strict; the planned tests are a third of them
    seeds = {
        BASE: (0.70, 0.71, 0.72), NEW: (0.60, 0.66, 0.64), UNIFORM: (0.30, 0.33, 0.31),
        OTHER: (0.69, 0.74, 0.70), "luong_general": (0.71, 0.68, 0.73),
    }  # fmt: skip
    (comparison,) = of_seeds(tmp_path / "run", seeds).comparisons
    line = comparison.compared[NEW]
    assert line.worse_than_baseline
    assert line.rank == comparison.compared[BASE].rank == 1
    assert "worse than bahdanau by the planned test" in marks(comparison, NEW, {})
    assert NEW not in {leader.variant for leader in comparison.leading}
    told = _task(comparison)
    assert "n.s. against bahdanau: shaw_rpr (worse than bahdanau by the planned test)" in told
    assert "by the planned test: the test against the baseline" in legend_of_marks([comparison], {})


LATER_FAILED = {
    OTHER: (0.800, 0.803, 0.799),
    BASE: (0.900, 0.898, 0.902, 0.30, 0.31),
    "luong_general": (0.5, 0.502, 0.499, 0.503, 0.498),
}
"""Later seeds of the baseline failed: its mean is worse than that of a variant that is worse on
every seed that both have."""


def test_what_is_worse_on_common_seeds_is_nowhere_called_better(tmp_path: Path) -> None:
    looks = {"looks": {"first": 3, "first_seed": 0}}
    folder = of_seeds(tmp_path / "run", LATER_FAILED, **looks)
    (comparison,) = folder.comparisons
    assert [*comparison.compared] == [OTHER, BASE, "luong_general"], "in the order of the means"
    assert comparison.compared[OTHER].worse_than_baseline
    assert not beats(comparison, OTHER, BASE)
    assert beats(comparison, BASE, OTHER)
    assert comparison.turned(OTHER) == [BASE]
    assert [line.variant for line in comparison.leading] == [BASE]
    assert headline(folder).startswith("No variant is significantly better than bahdanau.")
    (need,) = needs(folder)
    assert (need.variant, need.beats_baseline) == (BASE, False)
    assert verdict(comparison) == "worse than bahdanau on common seeds"
    told = _task(comparison)
    assert told.startswith(
        "scaled_dot has the best mean, 0.8007 ± 0.0052 fraction. On common seeds scaled_dot is "
        "significantly worse than bahdanau. No variant is significantly better than bahdanau."
    )
    assert "Choose" not in told
    assert "n.s." not in told
    assert marks(comparison, BASE, {}) == ["baseline", "better on common seeds"]
    assert marks(comparison, OTHER, {}) == ["worse than bahdanau by the planned test"]
    legend = legend_of_marks([comparison], {})
    assert "better on common seeds: significantly better than the first line on the seeds" in legend


def test_a_control_that_is_better_on_common_seeds_says_so(tmp_path: Path) -> None:
    seeds = {
        OTHER: (0.800, 0.803, 0.799), UNIFORM: (0.900, 0.898, 0.902, 0.30, 0.31),
        BASE: (0.5, 0.502, 0.499, 0.503, 0.498),
    }  # fmt: skip
    folder = of_seeds(tmp_path / "run", seeds, looks={"first": 3, "first_seed": 0})
    (comparison,) = folder.comparisons
    assert verdict(comparison) == "better than bahdanau; worse than no_attention on common seeds"
    told = _task(comparison)
    assert "On common seeds scaled_dot is significantly worse than no_attention." in told
    assert "The control no_attention is better than the best mean on common seeds." in told


def test_the_difference_beside_a_choice_is_the_one_that_was_tested(tmp_path: Path) -> None:
    """A seed of a look that is not complete belongs to no test."""
    seeds = {
        NEW: (0.900, 0.903, 0.899, 0.10), BASE: (0.800, 0.803, 0.801, 0.802, 0.80),
        UNIFORM: (0.30, 0.301, 0.299, 0.30, 0.302),
    }  # fmt: skip
    folder = of_seeds(tmp_path / "run", seeds, looks={"first": 3, "first_seed": 0})
    (need,) = needs(folder)
    assert (need.variant, need.beats_baseline) == (NEW, True)
    assert "difference 0.0993 on the 3 shared and tested seeds" in evidence_text(need)


def test_a_tooltip_says_no_detectable_difference_that_cannot_be(tmp_path: Path) -> None:
    wild = {BASE: (0.05, 0.9, 0.4), NEW: (0.95, 0.1, 0.5), UNIFORM: (0.3, 0.1, 0.7)}
    (comparison,) = of_seeds(tmp_path / "run", wild).comparisons
    decision = planned(comparison, NEW, BASE)
    assert decision is not None
    assert 1 < decision.detectable < math.inf
    told = verdict_help(comparison, decision)
    assert told.endswith(
        "What is found in 80 % of runs is more than the whole range of the metric."
    )
    found = verdict_help(comparison, replace(decision, detectable=0.05))
    assert found.endswith("Differences of 0.0500 fraction or more are found in 80 % of runs.")


def test_a_difference_that_exceeds_the_range_is_not_printed_as_detectable() -> None:
    assert _detectable(1.02, (0.0, 1.0), "copying").text == "more than the whole range"
    assert _detectable(0.5, (0.0, 1.0), "copying").text == "0.500"
    assert _detectable(0.5, (0.0, math.inf), "copying").text == "0.500"


def shown_of(folder: RunFolder) -> tuple[TableCell, TableCell]:
    """Detectable difference and seeds to decide of the only comparison."""
    section = decisions_section(folder)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    *_, detectable, seeds = table.rows[0]
    return detectable, seeds


def test_where_no_spread_was_seen_nothing_is_known_about_further_seeds(tmp_path: Path) -> None:
    same = dict.fromkeys((BASE, NEW, UNIFORM), (0.5, 0.5, 0.5))
    for cell in shown_of(of_seeds(tmp_path / "same", same)):
        assert cell.text == NO_VALUE
        assert "no spread was seen" in cell.help


def test_more_seeds_than_anybody_runs_are_the_number_of_the_statistics(tmp_path: Path) -> None:
    noisy = {BASE: (0.1, 0.9, 0.5), NEW: (0.9, 0.1, 0.5), UNIFORM: (0.5, 0.1, 0.9)}
    _, seeds = shown_of(of_seeds(tmp_path / "noisy", noisy))
    assert seeds.text == f"> {MOST_SEEDS}"


def test_who_is_better_by_the_planned_test_is_nowhere_called_not_significant(
    tmp_path: Path,
) -> None:
    seeds = {
        NEW: (0.70, 0.71, 0.72), BASE: (0.60, 0.66, 0.64), UNIFORM: (0.30, 0.33, 0.31),
        OTHER: (0.61, 0.64, 0.62), "luong_general": (0.63, 0.60, 0.65),
    }  # fmt: skip
    (comparison,) = of_seeds(tmp_path / "run", seeds).comparisons
    assert comparison.compared[NEW].better_than_baseline
    assert not comparison.compared[BASE].differs_from_best
    assert verdict(comparison) == "better than no_attention and bahdanau"
    assert "better than bahdanau by the planned test" in marks(comparison, NEW, {})


def test_what_a_test_would_find_stands_beside_its_p_value(tmp_path: Path) -> None:
    levels = {BASE: (0.5, 0.6, 0.7), NEW: (0.58, 0.66, 0.8)}
    of_seeds(tmp_path / "run", levels)
    text = markdown_of(render(tmp_path / "run"))
    heads, row = (
        next(line for line in text.splitlines() if line.startswith(begin))
        for begin in ("| Rank |", "| 1 | ")
    )
    names = [head.partition("<br>")[0].strip() for head in heads.split(" | ")]
    cells = [cell.strip() for cell in row.split(" | ")]
    # a paired t test of two: standard error 0.02 / sqrt(3), two degrees of freedom, power of 80%
    error, freedom = 0.02 / math.sqrt(3), 2
    least = error * (stats.t.ppf(0.975, freedom) + stats.t.ppf(0.8, freedom))
    found = float(cells[names.index("Detectable difference")])
    assert found == pytest.approx(least, rel=0.01)
    assert names.index("Detectable difference") == names.index("Effect size") + 1


def table_and_notes(folder: RunFolder) -> tuple[list[dict[str, str]], str]:
    section = decisions_section(folder)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    heads = [column.title for column in table.columns]
    rows = [dict(zip(heads, [cell.text for cell in row], strict=True)) for row in table.rows]
    return rows, " ".join(table.notes)


def with_margins(folder: RunFolder, margin: float) -> RunFolder:
    metrics = folder.catalog.metrics
    folder.catalog.metrics = {name: replace(one, margin=margin) for name, one in metrics.items()}
    return folder


def test_a_margin_that_all_comparisons_share_is_a_sentence_and_no_column(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": TIED})
    rows, notes = table_and_notes(folder)
    assert "Margin" not in rows[0]
    assert "No margin was fixed for these metrics" in notes
    _, notes = table_and_notes(with_margins(folder, 0.05))
    assert "within 0.0500 of zero" in notes


def test_a_significant_difference_below_the_margin_is_better_and_the_page_says_which_goes_first(
    tmp_path: Path,
) -> None:
    seeds = {
        BASE: (0.500, 0.501, 0.503), NEW: (0.521, 0.522, 0.523), UNIFORM: (0.30, 0.302, 0.301),
    }  # fmt: skip
    folder = with_margins(of_seeds(tmp_path / "run", seeds), 0.05)
    (comparison,) = folder.comparisons
    found = comparison.primary[Hypothesis(NEW, BASE)]
    assert found.p_equivalent < 0.05
    assert found.outcome == "better"
    _, notes = table_and_notes(folder)
    assert (
        "A significant difference counts as better or worse, even if it is smaller than the "
        "margin. Of the others, one is called equivalent if two one-sided tests show that it lies "
        "within 0.0500 of zero."
    ) in notes
    assert "significant all the same" not in notes + MARGIN_HELP


def test_where_margins_differ_the_page_says_which_goes_first_too(tmp_path: Path) -> None:
    folder = with_margins(written(tmp_path / "run", {"copying": DECIDED, "sorting": TIED}), 0.05)
    known = folder.catalog
    known.tasks = {**known.tasks, "sorting": replace(known.task("sorting"), margin=0.02)}
    rows, notes = table_and_notes(folder)
    assert sorted(row["Margin"] for row in rows) == ["0.0200", "0.0500"]
    assert notes.startswith(f"{MARGIN_HELP} Comparisons of which most is decided come first.")
    assert MARGIN_HELP.startswith("A significant difference counts as better or worse, even if ")


def test_the_median_of_an_even_number_of_tests_lies_between_the_middle_two(tmp_path: Path) -> None:
    seeds = {
        BASE: (0.50, 0.51, 0.53), NEW: (0.52, 0.55, 0.51), OTHER: (0.5, 0.7, 0.6),
        "luong_general": (0.50, 0.501, 0.502), "lstmn": (0.40, 0.45, 0.43),
    }  # fmt: skip
    folder = of_seeds(tmp_path / "run", seeds)
    (comparison,) = folder.comparisons
    tests = sorted(one.detectable for one in comparison.primary.values())
    assert len(tests) == 4
    assert tests[1] < 0.99 * tests[2]
    detectable, _ = shown_of(folder)
    assert detectable.sort == pytest.approx((tests[1] + tests[2]) / 2)


def test_comparisons_of_which_most_is_decided_come_first(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"a": TIED, "b": DECIDED})
    assert [row["Comparison"] for row in table_and_notes(folder)[0]] == ["b", "a"]


def test_an_equivalence_that_uniform_attention_shares_says_so(tmp_path: Path) -> None:
    levels = {BASE: 0.50, OTHER: 0.5005, UNIFORM: 0.495}
    folder = with_margins(written(tmp_path / "run", {"sorting": levels}), 0.05)
    (row,), _ = table_and_notes(folder)
    assert row["Against bahdanau"] == "1 equivalent (as uniform attention is)"
    apart = with_margins(written(tmp_path / "apart", {"sorting": TIED}), 0.05)
    (row,), _ = table_and_notes(apart)
    assert row["Against bahdanau"] == "1 equivalent"


def test_a_pipeline_check_says_who_was_better_than_counts_after_all(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"sorting": DECIDED}, without={"sorting": 0.7})
    (told,) = left_out(checked(folder, "sorting", "Counts win in every seed."))
    assert told == (
        "sorting: Counts win in every seed. In this run, of 2 variants, 2 are significantly above "
        "uniform attention and 1 is better than the best non-neural baseline in every seed. A mark "
        "is not lifted after scores were seen."
    )
    (comparison,) = folder.comparisons
    (beside,) = caveats(folder, comparison)
    assert beside.text == f"{NO_EVIDENCE} {told.removeprefix('sorting: ')}"
    assert _overall([comparison]) == (
        "Choose nothing from this run. All of its comparisons with scores are pipeline checks."
    )


def test_a_pipeline_check_tells_both_references_where_one_is_passed(tmp_path: Path) -> None:
    levels = {BASE: 0.30, NEW: 0.31, UNIFORM: 0.90}
    folder = written(tmp_path / "run", {"sorting": levels}, without={"sorting": 0.2})
    (told,) = left_out(checked(folder, "sorting", "Seeds overlap with those of uniform attention."))
    assert (
        "of 2 variants, none is significantly above uniform attention and 2 are better than the "
        "best non-neural baseline in every seed."
    ) in told


def test_one_network_of_a_task_may_be_a_pipeline_check(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": DECIDED})
    known = folder.catalog
    network = folder.comparisons[0].backbone.partition("[")[0]
    del folder.__dict__["comparisons"]
    over = {"sorting": {network: "Counts win over it."}, "copying": {"other": "Counts win."}}
    known.tasks = {name: replace(known.task(name), pipeline_check_over=over[name]) for name in over}
    assert [need.title for need in needs(folder)] == ["use of copying"]
    assert [one.title for one in folder.comparisons] == ["copying", "sorting (pipeline check)"]
    assert [text.partition(". In")[0] for text in left_out(folder)] == [
        "sorting: Counts win over it"
    ]
    assert [one.task for one in tested.tested_comparisons(folder)] == ["copying"]


def test_a_task_may_have_a_margin_of_its_own(tmp_path: Path) -> None:
    folder = with_margins(written(tmp_path / "run", {"sorting": TIED}), 0.05)
    (comparison,) = folder.comparisons
    assert comparison.primary[Hypothesis(OTHER, BASE)].outcome == "equivalent"
    known = folder.catalog
    known.tasks = {"sorting": replace(known.task("sorting"), margin=0.0001)}
    del folder.__dict__["comparisons"]
    (comparison,) = folder.comparisons
    assert comparison.ranked_by.margin == 0.0001
    assert comparison.primary[Hypothesis(OTHER, BASE)].outcome == "undecided"
