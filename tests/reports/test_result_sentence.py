"""The first sentences of a report say what was tested against the baseline, and no more."""

from pathlib import Path

import pytest
from synthetic_levels import BASE, NEW, OTHER, UNIFORM, Scores, of_seeds, written

from reports.blocks import TableBlock
from reports.choices import choices_table
from reports.evidence import evidence_text
from reports.needs import needs
from reports.ranked_table.steps_to_threshold import STEPS
from reports.ranked_table.verdicts import planned_text
from reports.render import render
from reports.result_sentence import headline
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
