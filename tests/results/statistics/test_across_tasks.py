import numpy as np
import pytest
from scipy import stats

from results.statistics import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    sign_test,
)


def test_a_sign_test_is_that_of_a_fair_coin():
    assert sign_test(9, 1) == pytest.approx(stats.binomtest(9, 10).pvalue)
    assert sign_test(1, 9) == sign_test(9, 1)


def test_a_run_that_always_wins_is_better_with_certainty_whichever_side_is_better():
    tasks = [([0.9, 0.8], [0.1, 0.2], "higher"), ([1.0, 2.0], [5.0, 6.0], "lower")] * 2
    found = probability_of_improvement(tasks, np.random.default_rng(0))
    assert (found.estimate, found.low, found.high, found.count) == (1.0, 1.0, 1.0, 4)


@pytest.mark.parametrize("uses", [["one"] * 3, ["one", "one", "two"]])
def test_one_or_two_uses_have_no_interval(uses):
    tasks = [([0.9, 0.8], [0.1, 0.2], "higher")] * 3
    found = probability_of_improvement(tasks, np.random.default_rng(0), uses=uses)
    assert (found.estimate, found.low, found.high) == (1.0, -np.inf, np.inf)


def test_equal_runs_count_as_half():
    found = probability_of_improvement([([1.0, 1.0], [1.0], "higher")], np.random.default_rng(0))
    assert found.estimate == 0.5


def test_each_task_weighs_the_same_however_many_seeds_it_has():
    tasks = [([1.0] * 9, [0.0], "higher"), ([0.0], [1.0], "higher")]
    assert probability_of_improvement(tasks, np.random.default_rng(0)).estimate == 0.5


def test_a_task_without_scores_of_both_is_an_error():
    with pytest.raises(ValueError, match="needs scores of both"):
        probability_of_improvement([([1.0], [], "higher")], np.random.default_rng(0))


def test_the_interquartile_mean_ignores_extreme_runs_and_agrees_with_scipy():
    tasks = [[0.5, 0.6, 0.7], [0.55, 0.65, 100.0], [0.4, -50.0, 0.62]]
    found = interquartile_mean(tasks, np.random.default_rng(0))
    assert found.estimate == pytest.approx(stats.trim_mean(np.concatenate(tasks), 0.25))
    assert found.low <= found.estimate <= found.high
    with pytest.raises(ValueError, match="scores on every task"):
        interquartile_mean([[1.0], []], np.random.default_rng(0))


def test_a_profile_counts_each_task_alike_however_many_seeds_it_has():
    assert performance_profile([[1.0] * 9, [0.0]], [0.5]) == [0.5]


def test_tasks_of_one_use_count_once():
    wins = ([1.0, 1.0], [0.0, 0.0], "higher")
    losses = ([0.0, 0.0], [1.0, 1.0], "higher")
    tasks = [wins, wins, wins, losses]
    apart = probability_of_improvement(tasks, np.random.default_rng(0))
    together = probability_of_improvement(
        tasks, np.random.default_rng(0), uses=["a", "a", "a", "b"]
    )
    assert apart.estimate == 0.75
    assert (together.estimate, together.count) == (0.5, 2)
