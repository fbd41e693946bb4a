import math

from results.statistics import pareto_front


def test_the_pareto_front_holds_what_nothing_beats():
    points = [(0.9, 10), (0.8, 5), (0.8, 6), (0.95, 20), (0.9, 10), (0.7, math.nan)]
    assert pareto_front(points, ("higher", "lower")) == [True, True, False, True, True, False]


def test_a_front_of_nothing_is_empty():
    assert pareto_front([], ("higher", "lower")) == []


def test_a_cost_that_is_lower_by_less_than_a_factor_does_not_help():
    points = [(0.9, 10.0), (0.8, 8.0), (0.7, 6.0), (0.9, 9.0), (0.9, 20.0)]
    assert pareto_front(points, ("higher", "lower"), (1.0, 1.3)) == [True, False, True, True, False]
    assert pareto_front(points, ("higher", "lower")) == [False, True, True, True, False]
