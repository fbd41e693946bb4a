"""Findings name a variant to choose only where it is shown to be above uniform attention."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_levels import BASE, NEW, OTHER, UNIFORM, Scores, of_seeds

from reports.folder import RunFolder
from reports.needs import needs
from reports.sections.control_findings import controls
from reports.sections.findings import _overall, _task

WIDE: Scores = {BASE: (0.90, 0.91, 0.93), OTHER: (0.5, 0.52, 0.51), UNIFORM: (0.2, 0.6, 0.89)}
"""The baseline alone is among the best, and uniform attention is tied with it."""
CLEAR: Scores = {BASE: (0.5, 0.502, 0.499), NEW: (0.9, 0.901, 0.903), UNIFORM: (0.3, 0.302, 0.301)}


def overall(folder: RunFolder) -> str:
    return _overall(folder.comparisons)


def test_what_is_tied_with_uniform_attention_is_not_chosen(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", WIDE)
    (comparison,) = folder.comparisons
    first = {line.variant for line in comparison.leading}
    assert (BASE in first, UNIFORM in first) == (True, True)
    assert overall(folder) == "Nothing is chosen: uniform attention is tied with the best."
    (need,) = needs(folder)
    assert need.is_open, "the table of choices names none, either"


def test_several_that_are_tied_with_uniform_attention_are_no_choice(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", {**WIDE, OTHER: (0.91, 0.90, 0.92)})
    assert overall(folder) == "Nothing is chosen: uniform attention is tied with the best."


def test_a_control_is_never_chosen(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", {**CLEAR, UNIFORM: (0.97, 0.972, 0.971)})
    (comparison,) = folder.comparisons
    assert overall(folder) == (
        "Nothing is chosen: no contender is among the best in the one comparison."
    )
    told = _task(comparison)
    assert told.startswith("no_attention has the best mean, 0.9710 ± 0.0025 fraction, signif")
    assert "significantly better than all 2 others. It is a control, so nothing is chosen." in told
    assert "Choose" not in told


def test_one_that_is_above_uniform_attention_is_chosen(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", CLEAR)
    assert overall(folder) == (
        "Choose shaw_rpr. No other contender is among the best in the one comparison. This holds "
        "for these tasks at this budget and size."
    )
    assert _task(folder.comparisons[0]).startswith("Choose shaw_rpr. Its mean is 0.9013 ± 0.0038")


def test_uniform_attention_with_one_seed_shows_nothing_to_be_above_it(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", {**CLEAR, UNIFORM: (0.3, None, None)})
    assert overall(folder) == (
        "Nothing is chosen: none of the best in the one comparison is significantly above uniform "
        "attention."
    )
    told = _task(folder.comparisons[0])
    assert "It is not significantly above uniform attention, so nothing is chosen." in told
    assert "Choose" not in told


def test_a_choice_for_several_tasks_is_above_uniform_attention_in_each(tmp_path: Path) -> None:
    folder = of_seeds(tmp_path / "run", CLEAR, {"sorting": CLEAR})
    assert overall(folder) == (
        "Choose shaw_rpr where one variant has to do for all 2 comparisons. No other contender is "
        "among the best in all 2 comparisons. This holds for these tasks at this budget and size. "
        "For one of them alone the table of choices may name another."
    )
    tied: Scores = {BASE: (0.5, 0.52, 0.51), NEW: (0.90, 0.91, 0.93), UNIFORM: (0.2, 0.6, 0.89)}
    open_ = of_seeds(tmp_path / "open", CLEAR, {"sorting": tied})
    assert overall(open_) == (
        "Nothing is chosen: uniform attention is tied with the best in 1 of 2 comparisons."
    )
    apart = of_seeds(tmp_path / "apart", CLEAR, {"sorting": {**CLEAR, NEW: (0.4, 0.402, 0.401)}})
    assert overall(apart) == (
        "No contender is among the best in all 2 comparisons. The choice depends on the task."
    )


def test_of_the_best_those_alone_are_named_that_are_above_uniform_attention(tmp_path: Path) -> None:
    # the other one varies so much that its test against uniform attention is open
    noisy: Scores = {
        BASE: (0.90, 0.905, 0.903, 0.902, 0.899),
        OTHER: (0.99, 0.2, 0.95, 0.99, 0.97),
        UNIFORM: (0.3, 0.302, 0.301, 0.299, 0.3),
    }
    folder = of_seeds(tmp_path / "run", noisy)
    (need,) = needs(folder)
    assert need.variant == BASE
    assert overall(folder) == (
        "Choose bahdanau. No other of the best in the one comparison is significantly above "
        "uniform attention. This holds for these tasks at this budget and size."
    )


def test_where_uniform_attention_was_not_run_something_must_be_decided(tmp_path: Path) -> None:
    tied = {BASE: (0.5, 0.55, 0.6), OTHER: (0.51, 0.6, 0.55), NEW: (0.52, 0.54, 0.6)}
    assert overall(of_seeds(tmp_path / "open", tied)) == (
        "Nothing is chosen: no primary hypothesis is decided in the one comparison."
    )
    best = {name: CLEAR[name] for name in (BASE, NEW)}
    assert overall(of_seeds(tmp_path / "run", best)).startswith("Choose shaw_rpr. No other")


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ((0.5, None, None), "it has a score in 1 of 3 seeds"),
        ((None, None, None), "it has a score in 0 of 3 seeds"),
        ((), "it was not run here"),
    ],
)
def test_a_baseline_without_a_test_says_why(
    tmp_path: Path, scores: tuple[float | None, ...], why: str
) -> None:
    folder = of_seeds(tmp_path / "run", {**CLEAR, BASE: scores, OTHER: (0.7, 0.702, 0.701)})
    told = _task(folder.comparisons[0])
    assert f"Nothing is tested against bahdanau: {why}." in told
    assert "No variant is significantly better" not in told


def test_a_baseline_of_a_red_certificate_says_so(tmp_path: Path) -> None:
    red = "mocha[chunk=4]"
    scores = {OTHER: CLEAR[NEW], NEW: CLEAR[BASE], red: (0.5, 0.51, 0.52), UNIFORM: CLEAR[UNIFORM]}
    folder = of_seeds(tmp_path / "run", scores, baseline=red)
    told = _task(folder.comparisons[0])
    assert "Nothing is tested against mocha: its certificate is red." in told
    nameless = of_seeds(tmp_path / "none", scores, baseline="")
    told = _task(nameless.comparisons[0])
    assert "Nothing is tested against a baseline: the run names none." in told


AGAIN = "luong_general"


@pytest.mark.parametrize(
    ("again", "told"),
    [
        ((0.500, 0.503, 0.498), "The two are tied, as they must be."),
        ((0.40, 0.402, 0.399), "and yet significantly worse than it. So two trainings of the same"),
        ((0.95, 0.952, 0.949), "and yet significantly better than it. So two trainings of the"),
    ],
)
def test_the_baseline_under_another_name_is_tested_against_the_baseline(
    tmp_path: Path, again: tuple[float, ...], told: str
) -> None:
    folder = of_seeds(tmp_path / "run", {**CLEAR, AGAIN: again})
    known = folder.catalog
    known.variants = {**known.variants, AGAIN: replace(known.variant(AGAIN), control="aa")}
    (comparison,) = folder.comparisons
    (about,) = [one for one in controls(comparison) if "under another name" in one]
    assert about.startswith("luong_general is the baseline under another name")
    assert told in about


def test_without_a_baseline_its_second_name_is_tied_with_nothing(tmp_path: Path) -> None:
    scores = {name: found for name, found in CLEAR.items() if name != BASE}
    folder = of_seeds(tmp_path / "run", {**scores, AGAIN: (0.9, 0.902, 0.9)})
    known = folder.catalog
    known.variants = {**known.variants, AGAIN: replace(known.variant(AGAIN), control="aa")}
    assert not any("another name" in one for one in controls(folder.comparisons[0]))
