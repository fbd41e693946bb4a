"""Headlines: what ranks in the place of a plain score that would be saturated."""

import pytest

from bench.api.headline import area_under_curve, beyond_training
from bench.api.metric import Metric, Scored
from bench.api.task import Task

ERROR = Metric(name="error_rate", title="Error", unit="errors", low=0.0, high=None, better="lower")


def at(x: float, value: float, metric: str = "error_rate", axis: str = "length") -> Scored:
    return Scored(metric=metric, value=value, axis=axis, x=x)


def test_beyond_training_is_the_mean_of_what_is_longer_than_all_of_training():
    scores = [
        at(8, 0.1),
        at(9, 0.2),
        at(12, 0.6),
        at(12, 9.0, metric="another"),
        at(12, 9.0, axis="difficulty"),
        Scored(metric="error_rate", value=9.0),
    ]
    (found,) = beyond_training(ERROR).beyond(scores, trained_to=8)
    assert found == Scored(metric="beyond_training_error_rate", value=pytest.approx(0.4))
    assert beyond_training(ERROR).beyond(scores, trained_to=12) == []
    assert area_under_curve(ERROR).beyond(scores, trained_to=8) == []


def test_weights_are_chosen_by_both_parts_of_the_lengths_alike():
    scores = [at(2, 0.0), at(4, 0.1), at(8, 0.2), at(16, 0.9)]
    headline = beyond_training(ERROR)
    assert headline.choosing_value(scores, trained_to=8) == pytest.approx(0.5)
    assert headline.choosing_value(scores, trained_to=16) is None
    assert headline.choosing_value(scores, trained_to=1) is None
    names = [task.choosing_metric().name for task in (Plain, Longer, Sooner)]
    assert names == ["error_rate", "choosing_error_rate", "error_rate"]


def test_an_area_weights_each_validation_by_the_steps_since_the_last_one():
    area = area_under_curve(ERROR).area
    assert area([(10, 1.0), (40, 0.0)], steps=40) == pytest.approx(0.25)
    assert area([(10, 1.0)], steps=10) == 1.0


def test_training_that_stopped_early_keeps_its_last_score():
    area = area_under_curve(ERROR).area
    soon, late = area([(100, 1.0)], steps=400), area([(100, 0.0), (200, 1.0)], steps=400)
    assert (soon, late) == (1.0, 0.75)


def test_a_headline_keeps_unit_range_and_better_side_under_a_name_of_its_own():
    for headline in (area_under_curve(ERROR), beyond_training(ERROR)):
        metric = headline.metric
        assert (metric.unit, metric.low, metric.high, metric.better) == (
            "errors",
            0.0,
            None,
            "lower",
        )
        assert metric.name != ERROR.name
        assert metric.name.endswith(ERROR.name), "names end in their unit"


class Plain(Task):
    metrics = (ERROR,)


class Longer(Plain):
    headline = beyond_training(ERROR)


class Sooner(Plain):
    headline = area_under_curve(ERROR)


def test_training_watches_the_headline_unless_that_is_known_at_the_end_only():
    names = [(t.ranking_metric().name, t.watched_metric().name) for t in (Plain, Longer, Sooner)]
    assert names == [
        ("error_rate", "error_rate"),
        ("beyond_training_error_rate", "beyond_training_error_rate"),
        ("along_training_error_rate", "error_rate"),
    ]
    assert [metric.name for metric in Sooner.all_metrics()] == [
        "along_training_error_rate",
        "error_rate",
    ]
