import math

from results.statistics import pareto_front


def test_the_pareto_front_holds_what_nothing_beats():
    points = [(0.9, 10), (0.8, 5), (0.8, 6), (0.95, 20), (0.9, 10), (0.7, math.nan)]
    assert pareto_front(points, ("higher", "lower")) == [True, True, False, True, True, False]


def test_a_front_of_nothing_is_empty():
    assert pareto_front([], ("higher", "lower")) == []
