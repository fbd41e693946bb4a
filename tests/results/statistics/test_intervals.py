import math

import numpy as np
import pytest
from scipy import stats

from results.statistics import (
    Interval,
    paired_difference,
    ratio_interval,
    t_interval,
)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("count", [2, 3, 5, 30])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_t_interval_agrees_with_scipy(rng, count, level):
    values = rng.normal(5, 2, count)
    expected = stats.t.interval(level, count - 1, values.mean(), stats.sem(values))
    found = t_interval(values, level)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-12)
    assert found.count == count
    assert found.half_width == pytest.approx((expected[1] - expected[0]) / 2)


def test_one_seed_says_nothing_about_its_error():
    found = t_interval([0.9])
    assert found == Interval(estimate=0.9, low=-math.inf, high=math.inf, count=1)
    assert found.contains(-1e300)
    assert found.half_width == math.inf


def test_no_seeds_have_no_estimate():
    found = t_interval([])
    assert math.isnan(found.estimate)
    assert (found.low, found.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("values", [[1.0, math.nan], [math.inf], [[1.0]]])
def test_values_that_are_no_flat_finite_list_are_refused(values):
    with pytest.raises(ValueError, match="finite"):
        t_interval(values)


@pytest.mark.parametrize("level", [0, 1, 95])
@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0]])
def test_a_level_that_is_no_share_is_refused(level, values):
    with pytest.raises(ValueError, match="level"):
        t_interval(values, level)


def test_the_paired_difference_agrees_with_scipy(rng):
    left, right = rng.normal(1, 1, 6), rng.normal(0, 1, 6)
    expected = stats.ttest_rel(left, right)
    found = paired_difference(left, right)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    bounds = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))
    assert paired_difference(right, left).p == pytest.approx(found.p)


def test_a_pair_alone_is_no_evidence():
    found = paired_difference([1.0], [0.0])
    assert (found.estimate, found.p, found.low) == (1.0, 1.0, -math.inf)
    assert paired_difference([], []).p == 1.0


@pytest.mark.parametrize("count", [2, 3, 6, 10])
def test_a_difference_without_spread_has_the_p_of_the_sign_test_and_no_bounds(count):
    found = paired_difference([1.0] * count, [1023 / 1024] * count)
    assert found.p == pytest.approx(stats.binomtest(count, count).pvalue)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.without_spread
    assert paired_difference([1023 / 1024] * count, [1.0] * count).p == found.p


def test_scores_that_are_equal_are_no_difference():
    found = paired_difference([0.9, 0.7, 0.8], [0.9, 0.7, 0.8])
    assert (found.estimate, found.p) == (0.0, 1.0)
    assert paired_difference([0.0, 0.0], [0.0, 0.0]).p == 1.0


def test_rounding_is_no_spread():
    """One answer of 5 in each of three seeds: differences that differ in the last bit."""
    left, right = np.array([2, 3, 5]) / 5, np.array([1, 2, 4]) / 5
    assert 0 < (left - right).std() < 1e-15
    assert paired_difference(left, right).p == pytest.approx(0.25)
    copies = [2780.48830, 2780.48835, 2780.48850]
    assert t_interval(copies).high == math.inf
    assert paired_difference(copies, [2891.01] * 3).p == pytest.approx(0.25)
    assert paired_difference(copies, [2780.48835] * 3).p == 1.0


def test_the_scores_and_not_their_difference_say_what_rounding_is():
    """A small difference of large scores with a true spread of its size keeps its t test."""
    assert paired_difference([5.0, 6.001, 7.0015], [5.001, 6.0, 7.001]).p > 0.25
    left, right = np.array([1.0, 1.0, 1.0]), 1 - np.array([1e-4, 2e-4, 1.5e-4])
    assert paired_difference(left, right).p == pytest.approx(stats.ttest_rel(left, right).pvalue)


def test_values_without_spread_bound_nothing():
    found = t_interval([0.75, 0.75, 0.75])
    assert (found.estimate, found.low, found.high) == (0.75, -math.inf, math.inf)
    assert found.without_spread
    assert not t_interval([0.8]).without_spread
    assert not t_interval([0.8, 0.81]).without_spread
    assert t_interval([0.0, 0.0]).high == math.inf


def test_ratios_that_differ_by_rounding_alone_are_not_bounded():
    found = ratio_interval(np.log([1.0, 1 + 1e-15, 1 - 1e-15]))
    assert (found.low, found.high) == (0.0, math.inf)
    assert found.estimate == pytest.approx(1.0)


def test_pairs_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="2 and 1"):
        paired_difference([1.0, 2.0], [1.0])


def test_a_ratio_of_times_is_the_mean_of_log_ratios():
    logs = np.log([2.0, 8.0, 4.0])
    found = ratio_interval(logs)
    half = stats.t.ppf(0.975, 2) * stats.sem(logs)
    assert found.estimate == pytest.approx(4.0)
    assert (found.low, found.high) == pytest.approx((4 * math.exp(-half), 4 * math.exp(half)))


def test_a_ratio_turned_around_is_its_inverse(rng):
    logs = rng.normal(0.3, 0.1, 9)
    assert ratio_interval(logs).low == pytest.approx(1 / ratio_interval(-logs).high)


def test_one_round_bounds_no_ratio():
    found = ratio_interval([math.log(2.0)])
    assert (found.estimate, found.low, found.high) == (2.0, 0.0, math.inf)


def test_bounds_beyond_the_largest_float_are_infinite():
    found = ratio_interval([-1e4, 1e4])
    assert (found.low, found.high) == (0.0, math.inf)


def test_a_time_of_zero_is_refused():
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="finite"):
        ratio_interval(np.log([1.0, 0.0]))
