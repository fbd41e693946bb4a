import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from results.statistics import (
    expected_best,
    interquartile_mean,
    pareto_front,
    probability_of_improvement,
)

TRIALS = [0.3, 0.9, 0.5, 0.5, 0.7, 0.1]


@pytest.mark.parametrize("count", range(1, 7))
def test_the_expected_best_is_the_mean_over_all_budgets_of_this_size(count):
    best = [max(subset) for subset in combinations(TRIALS, count)]
    worst = [min(subset) for subset in combinations(TRIALS, count)]
    assert expected_best(TRIALS, count) == pytest.approx(np.mean(best))
    assert expected_best(TRIALS, count, "lower") == pytest.approx(np.mean(worst))


def test_the_expected_best_is_unbiased():
    """Uniform scores: the best of 3 is 3/4 on average, estimated from 5 trials each time."""
    draw = np.random.default_rng(0)
    found = [expected_best(draw.uniform(size=5), 3) for _ in range(3000)]
    assert np.mean(found) == pytest.approx(0.75, abs=4 * stats.sem(found))


def test_thousands_of_trials_do_not_overflow():
    assert expected_best(np.arange(5000.0), 2500) == pytest.approx(4998, abs=0.01)


@pytest.mark.parametrize("count", [0, 7])
def test_the_best_of_more_trials_than_were_run_is_refused(count):
    with pytest.raises(ValueError, match="1 to 6"):
        expected_best(TRIALS, count)


@pytest.mark.parametrize("count", [1, 3, 4, 7, 12])
def test_the_interquartile_mean_agrees_with_scipy(count):
    table = np.random.default_rng(1).normal(size=(2, count))
    assert interquartile_mean(table) == pytest.approx(stats.trim_mean(table, 0.25, axis=-1))


def test_one_outlier_in_four_does_not_move_the_interquartile_mean():
    assert interquartile_mean([1.0, 2.0, 3.0, 1e9]) == 2.5
    assert math.isnan(interquartile_mean([]))


def test_the_probability_of_improvement_is_the_mann_whitney_statistic():
    draw = np.random.default_rng(2)
    left, right = draw.integers(0, 5, 7).astype(float), draw.integers(0, 5, 4).astype(float)
    expected = stats.mannwhitneyu(left, right).statistic / 28
    assert probability_of_improvement(left, right) == pytest.approx(expected)
    assert probability_of_improvement(left, right, "lower") == pytest.approx(1 - expected)


def test_equal_runs_improve_on_each_other_half_of_the_time():
    assert probability_of_improvement([1.0, 1.0], [1.0]) == 0.5
    assert probability_of_improvement([2.0], [1.0]) == 1.0
    assert math.isnan(probability_of_improvement([], [1.0]))


def test_the_pareto_front_holds_what_nothing_beats():
    points = [(0.9, 10), (0.8, 5), (0.8, 6), (0.95, 20), (0.9, 10), (0.7, math.nan)]
    assert pareto_front(points, ("higher", "lower")) == [True, True, False, True, True, False]


def test_a_front_of_nothing_is_empty():
    assert pareto_front([], ("higher", "lower")) == []
