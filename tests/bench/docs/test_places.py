"""Numbers in their places: as they are printed, and of which run, rows and lengths they are."""

from pathlib import Path

import pytest

from bench.docs import readme
from bench.docs.places import Score, filled, score
from reports.folder import read_folder
from reports.numbers import Seen
from results.statistics import Interval

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def runs():
    return {
        name: read_folder(ROOT / readme.PUBLISHED / f"{name}.parquet")
        for name in ("multi30k", "quick", "serving_gpu")
    }


def interval(estimate, low, high):
    return Interval(estimate=estimate, low=low, high=high, count=5)


def test_short_numbers_are_rounded_once_from_the_mean():
    """With two roundings 1.4749 was 1.475, and then 1.48."""
    narrow = Score.of(interval(1.4749, 1.4619, 1.4879))
    assert (narrow.text, narrow.short) == ("1.475 ± 0.013", "1.47")
    assert Score.of(interval(43.6547, 42.75, 44.55)).short == "43.7"


def test_a_wide_interval_is_told_in_the_short_list_too():
    wide = Score.of(interval(0.35, 0.04, 0.66))
    assert wide.short == wide.text == "0.35 ± 0.31"
    extremes = Score.of(interval(0.883, 0.56, 1.2), (0.0, 1.0), Seen(0.43, 1.0, 0))
    assert extremes.short == extremes.text == "0.883 (0.43–1.00)"
    assert Score.of(interval(1.0, float("-inf"), float("inf"))).short == "1.00"


def test_a_number_may_be_of_another_run_than_that_of_its_finding(runs):
    other = score(runs["multi30k"], "translation", "bahdanau")
    assert filled("{multi30k:translation/bahdanau}", runs["quick"], runs) == other.text


def test_lengths_are_those_of_the_rows(runs):
    quick = runs["quick"]
    (comparison,) = (one for one in quick.comparisons if one.title == "offset")
    trained = comparison.catalog.task(comparison.task).trained_to
    lengths = {at for _, at in comparison.stored.parts("token_accuracy", "length")}
    beyond = sorted(at for at in lengths if at > trained)
    text = "{offset@trained}, {offset@longest}, {offset@beyond}"
    wanted = f"{trained:g}, {beyond[-1]:g}, {' and '.join(f'{at:g}' for at in beyond)}"
    assert filled(text, quick) == wanted
    for name, at in (("trained", trained), ("longest", beyond[-1])):
        asked = score(quick, "offset", "rope", "token_accuracy", name)
        assert asked == score(quick, "offset", "rope", "token_accuracy", f"{at:g}")
    with pytest.raises(LookupError, match="are longer than in training"):
        filled("{translation@trained}", runs["multi30k"])
    with pytest.raises(LookupError, match="no comparison on nothing"):
        filled("{nothing@trained}", quick)


def test_speeds_may_be_of_other_rows_than_those_of_the_main_table(runs):
    one, many = (
        score(runs["serving_gpu"], task, "linear_attention", "", "8192").value
        for task in ("decode", "decode[batch=64]")
    )
    assert one < 1 < many
    with pytest.raises(LookupError, match="no speed of linear_attention with 8191 keys"):
        score(runs["serving_gpu"], "decode", "linear_attention", "", "8191")


def test_bytes_of_a_state_are_those_of_the_rows(runs):
    whole, shared = (
        score(runs["quick"], "recall", name, "state_bytes").value for name in ("mha", "mqa")
    )
    assert whole == 4 * shared
