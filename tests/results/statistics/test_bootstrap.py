import math

import numpy as np
import pytest

from results.statistics import hierarchical_bootstrap


def mean(runs):
    return runs.mean(axis=-1)


@pytest.fixture
def table():
    return np.random.default_rng(5).normal(0.7, 0.1, (4, 5)) + np.arange(4)[:, None]


def test_the_same_generator_gives_the_same_interval(table):
    first = hierarchical_bootstrap(table, np.random.default_rng(1))
    assert first == hierarchical_bootstrap(table, np.random.default_rng(1))
    assert first != hierarchical_bootstrap(table, np.random.default_rng(2))
    assert first.contains(first.estimate)


def test_tasks_that_stand_for_others_are_less_certain_than_fixed_ones(table):
    fixed = hierarchical_bootstrap(table, np.random.default_rng(1))
    sampled = hierarchical_bootstrap(table, np.random.default_rng(1), sampled_tasks=True)
    assert sampled.half_width > 3 * fixed.half_width
    assert (fixed.count, sampled.count) == (5, 4)


def test_one_seed_or_one_sampled_task_bounds_nothing():
    draw = np.random.default_rng(1)
    assert hierarchical_bootstrap([[1.0], [2.0]], draw).high == math.inf
    assert hierarchical_bootstrap([[1.0, 2.0]], draw, sampled_tasks=True).low == -math.inf


def test_scores_without_spread_have_an_interval_without_width():
    found = hierarchical_bootstrap(np.ones((3, 4)), np.random.default_rng(1))
    assert (found.low, found.high) == (1.0, 1.0)


@pytest.mark.parametrize("scores", [[], [1.0, 2.0], [[1.0, math.nan]]])
def test_scores_that_are_no_finite_table_are_refused(scores):
    with pytest.raises(ValueError, match="tasks x seeds"):
        hierarchical_bootstrap(scores, np.random.default_rng(1))


def test_four_tasks_with_three_seeds_are_covered_where_percentiles_are_not():
    """MEASUREMENT.md, section B: the percentile bootstrap covers 0.85 here."""
    draw, experiments, resamples = np.random.default_rng(11), 300, 200
    studentized = percentile = 0
    for _ in range(experiments):
        scores = draw.normal(size=(4, 3))
        bounds = hierarchical_bootstrap(scores, draw, statistic=mean, resamples=resamples)
        studentized += bounds.contains(0.0)
        again = scores[np.arange(4)[:, None], draw.integers(3, size=(resamples, 4, 3))]
        low, high = np.quantile(again.mean(axis=(1, 2)), [0.025, 0.975])
        percentile += low <= 0 <= high
    assert studentized / experiments > 0.91
    assert percentile / experiments < 0.90
