"""What a catalog says of calibration: the rates that were tried of each competitor."""

from collections import Counter

from bench.api.calibration import stored_choices
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.catalog import describe_task, describe_variant
from bench.running.quality_cells import sized_task


def test_the_catalog_counts_the_rates_that_the_file_of_the_task_holds() -> None:
    (choice,) = [one for one in stored_choices("recall") if (one.task, one.preset) == _QUICK]
    task, _, shown = sized_task("recall", "quick")
    expected = Counter(
        trial["competitor"]
        for trial in choice.trials
        if trial["setting"] == choice.chosen.name  # type: ignore[union-attr]  # it was chosen
    )
    found = describe_task(shown, task, "quick").tuned
    assert found == expected
    assert {*expected.values()} == {3}


def test_another_size_than_that_of_calibration_was_not_tuned() -> None:
    task = sized_task("recall[pairs=6]", "quick")[0]
    assert describe_task("recall", task, "quick").tuned == {}
    assert describe_task("recall", parse("recall"), "").tuned is None


_QUICK = ("recall", "quick")


def test_the_catalog_says_what_tells_places_without_a_position() -> None:
    names = ("path", "canon", "scaled_dot", "rope", "mamba2_ssd")
    found = {name: describe_variant(name, resolve(name)).tells_places for name in names}
    assert found == dict.fromkeys(names, False) | {"path": True, "canon": True}
