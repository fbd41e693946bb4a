"""The first sentences of a report say what was tested against the baseline, and no more."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_levels import BASE, NEW, OTHER, UNIFORM, Scores, of_seeds, written

from reports.blocks import TableBlock
from reports.choices import choices_table
from reports.evidence import evidence_text
from reports.folder import RunFolder
from reports.needs import needs
from reports.ranked_table.steps_to_threshold import STEPS
from reports.ranked_table.verdicts import planned_text
from reports.render import render
from reports.result_sentence import headline
from reports.sections.decisions import scope
from reports.sections.findings import _overall
from results.statistics import Hypothesis

NOISE = (0.004, -0.003, 0.0, 0.002, -0.003)
SOLVED: dict[str, Scores] = {
    "two seeds": {
        BASE: (1.0, 1.0), OTHER: (1.0, 0.995), NEW: (1.0, 1.0), UNIFORM: (0.30, 0.42),
    },
    "three seeds": {
        BASE: (1.0, 1.0, 1.0), OTHER: (1.0, 0.995, 1.0), NEW: (1.0, 1.0, 1.0),
        UNIFORM: (0.1, 0.5, 0.95),
    },
}  # fmt: skip
"""All contenders are saturated, and uniform attention, which is undecided, never is."""


def around(**levels: float) -> Scores:
    """Five seeds of each variant around a level, each its own way."""
    names = {"base": BASE, "new": NEW, "other": OTHER, "uniform": UNIFORM}
    return {
        names[name]: tuple(level + NOISE[(seed + at) % 5] for seed in range(5))
        for at, (name, level) in enumerate(levels.items())
    }


@pytest.mark.parametrize("seeds", SOLVED)
def test_uniform_attention_that_never_reached_a_threshold_has_no_steps(
    tmp_path: Path, seeds: str
) -> None:
    folder = of_seeds(tmp_path / "run", SOLVED[seeds], curves=True)
    (need,) = needs(folder)
    assert (need.evidence.metric, need.is_open) == (STEPS, True)
    assert UNIFORM not in need.evidence.scores
    assert need.evidence.above_every_seed(UNIFORM) == []
    told = headline(folder)
    assert "In every seed bahdanau, scaled_dot and shaw_rpr are above it." in told
    assert "In every seed bahdanau" in render(folder.path).markdown.read_text(encoding="utf-8")


def test_variants_that_are_better_than_a_baseline_below_uniform_attention_are_named(
    tmp_path: Path,
) -> None:
    folder = of_seeds(tmp_path / "run", around(base=0.30, new=0.805, uniform=0.80))
    (comparison,) = folder.comparisons
    assert planned_text(comparison, NEW, BASE) == "better"
    assert planned_text(comparison, BASE, UNIFORM) == "worse"
    assert headline(folder) == (
        "On copying shaw_rpr is significantly better than bahdanau, which is itself significantly "
        "below uniform attention. No variant is significantly above uniform attention for copying."
    )


def test_better_variants_are_named_task_by_task_and_the_rest_is_counted(tmp_path: Path) -> None:
    below = around(base=0.30, new=0.805, other=0.806, uniform=0.80)
    more = {f"sorting{at}": below for at in range(4)}
    told = headline(of_seeds(tmp_path / "run", below, more))
    assert told.startswith(
        "On copying scaled_dot and shaw_rpr are significantly better than bahdanau, which is itself"
    )
    assert told.count("which is itself significantly below uniform attention. ") == 3
    assert "On 2 more tests a variant is significantly better than bahdanau. No variant is" in told


LOST: Scores = {
    BASE: (0.5, None, None),
    NEW: (0.9, 0.901, 0.903),
    OTHER: (0.6, 0.602, 0.601),
    UNIFORM: (0.3, 0.302, 0.301),
}
"""The baseline diverged in two of three seeds."""


def test_a_baseline_that_diverged_was_tested_against_nothing(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", LOST)
    (comparison,) = folder.comparisons
    assert {asked.reference for asked in comparison.primary} == {UNIFORM}
    assert Hypothesis(NEW, UNIFORM) in comparison.primary
    assert headline(folder).startswith(
        "Nothing is tested against bahdanau: it has a score in 1 of 3 seeds. For copying at this "
    )
    (need,) = needs(folder)
    why = "not tested against 0.500 of bahdanau, for it has a score in 1 of 3 seeds"
    assert why in evidence_text(need)
    table = choices_table(folder)
    assert isinstance(table, TableBlock)
    (row,) = table.rows
    assert row[4].marks == (why,)
    assert "n.s. against 0.500" not in render(folder.path).markdown.read_text(encoding="utf-8")


def test_reasons_that_differ_have_their_tasks(tmp_path: Path) -> None:
    absent = {name: found for name, found in LOST.items() if name != BASE}
    told = headline(of_seeds(tmp_path / "run", LOST, {"sorting": absent}))
    assert told.startswith(
        "Nothing is tested against bahdanau: it has a score in 1 of 3 seeds on copying; it was not "
        "run here on sorting."
    )


def test_one_comparison_with_a_test_is_enough_to_say_that_nothing_is_better(tmp_path: Path) -> None:
    tested = {**LOST, BASE: (0.901, 0.903, 0.9), NEW: (0.9, 0.901, 0.903)}
    told = headline(of_seeds(tmp_path / "run", LOST, {"sorting": tested}))
    assert told.startswith("No variant is significantly better than bahdanau.")


def test_a_run_that_names_no_baseline_claims_nothing_about_one(tmp_path: Path) -> None:
    told = headline(of_seeds(tmp_path / "run", LOST, baseline=""))
    assert told.startswith("Nothing is tested against a baseline: the run names none.")


def test_what_is_better_on_the_whole_test_alone_is_said_to_be(tmp_path: Path) -> None:
    """Both are saturated, and on the part that was chosen after looking they are tied."""
    far = {BASE: {64: 0.41}, NEW: {64: 0.4101}, UNIFORM: {64: 0.2}}
    solved = {BASE: 0.990, NEW: 0.9965, UNIFORM: 0.30}
    folder = written(tmp_path / "run", {"copying": solved}, by_length=far)
    (need,) = needs(folder)
    assert (need.evidence.part, need.beats_baseline) == ("length 64", False)
    assert planned_text(need.evidence, NEW, BASE) == "better"
    assert headline(folder).startswith(
        "On the whole test of copying shaw_rpr is significantly better than bahdanau. For use of "
    )


def told_of(folder: RunFolder, checks: str = "", ablations: str = "") -> tuple[str, str, str]:
    """First sentence, overall finding and counts of a run with some tasks that decide nothing."""
    known = folder.catalog
    known.tasks = {
        name: replace(
            one,
            pipeline_check="It is small." if name in checks.split() else "",
            whole="everything" if name in ablations.split() else "",
        )
        for name, one in known.tasks.items()
    }
    return headline(folder), _overall(folder.comparisons), scope(folder)


CLEAR = around(base=0.5, new=0.9, uniform=0.3)


@pytest.mark.parametrize(
    ("checks", "ablations", "kinds", "counts"),
    [
        ("copying sorting", "", "pipeline checks", "2 are pipeline checks"),
        ("", "copying sorting", "input ablations", "2 are input ablations"),
        (
            "copying",
            "sorting",
            "pipeline checks or input ablations",
            "1 is a pipeline check and 1 is an input ablation",
        ),
    ],
)
def test_a_run_of_what_decides_nothing_says_what_it_is(
    tmp_path: Path, checks: str, ablations: str, kinds: str, counts: str
) -> None:
    folder = of_seeds(tmp_path / "run", CLEAR, {"sorting": CLEAR})
    first, overall, scoped = told_of(folder, checks, ablations)
    assert first == f"There is nothing to choose, because all comparisons with scores are {kinds}."
    assert overall == (
        f"Choose nothing from this run. All of its comparisons with scores are {kinds}."
    )
    assert scoped == f"2 tasks, 2 comparisons, of which {counts}"


def test_an_input_ablation_has_hypotheses_and_is_no_choice(tmp_path: Path) -> None:
    worse = around(base=0.9, new=0.5, uniform=0.3)
    folder = of_seeds(tmp_path / "run", CLEAR, {"sorting": worse})
    first, overall, scoped = told_of(folder, ablations="sorting")
    assert folder.comparisons[1].primary
    assert first.startswith("One choice is significantly better than bahdanau: shaw_rpr on copying")
    assert overall.startswith(
        "Choose shaw_rpr. No other contender is among the best in the one comparison that is no "
        "input ablation."
    )
    assert scoped.endswith("of which 1 is an input ablation and 1 is tested")


def test_what_decides_nothing_is_put_aside_where_the_rest_has_one_variant(tmp_path: Path) -> None:
    alone = {NEW: CLEAR[NEW], UNIFORM: CLEAR[UNIFORM]}
    folder = of_seeds(tmp_path / "run", alone, {"sorting": CLEAR})
    first, *_ = told_of(folder, checks="sorting")
    assert first == (
        "Pipeline checks aside, no comparison has two variants with several seeds, so there is "
        "nothing to choose between."
    )
    only = of_seeds(tmp_path / "only", alone)
    assert headline(only).startswith("No comparison has two variants with several seeds")


def test_of_many_choices_some_are_named_and_the_others_are_no_other_variants(
    tmp_path: Path,
) -> None:
    more = {f"sorting{at}": CLEAR for at in range(5)}
    told = headline(of_seeds(tmp_path / "run", CLEAR, more))
    assert told.startswith(
        "6 choices are significantly better than bahdanau: shaw_rpr on copying ("
    )
    assert ") and those for 3 more uses." in told
