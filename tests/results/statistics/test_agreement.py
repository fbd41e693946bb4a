"""Rank agreement of two tasks: exact on small cases, honest about few variants."""

import math

import numpy as np
import pytest
from scipy import stats

from results.statistics import LEAST_VARIANTS, rank_agreement


def scores(values: list[float], seeds: int = 3, noise: float = 0.0) -> dict[str, dict[int, float]]:
    draw = np.random.default_rng(1)
    return {
        f"v{at}": {seed: value + noise * draw.normal() for seed in range(seeds)}
        for at, value in enumerate(values)
    }


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_equal_orders_agree_and_reversed_ones_do_the_opposite() -> None:
    order = [float(at) for at in range(7)]
    same = rank_agreement(scores(order), scores([value**3 for value in order]), rng())
    assert same.correlation == pytest.approx(1)
    assert same.p == pytest.approx(2 / math.factorial(7))
    against = rank_agreement(scores(order), scores(order[::-1]), rng())
    assert against.correlation == pytest.approx(-1)


def test_the_estimate_is_that_of_scipy_on_means_over_seeds() -> None:
    left, right = scores([1, 3, 2, 5, 4, 6], noise=0.4), scores([2, 1, 4, 3, 6, 5], noise=0.4)
    found = rank_agreement(left, right, rng())
    means = [[np.mean([*by_seed.values()]) for by_seed in side.values()] for side in (left, right)]
    assert found.correlation == pytest.approx(stats.spearmanr(*means).statistic)
    assert -1 <= found.low <= found.correlation <= found.high <= 1
    assert found.variants == 6


def test_an_estimate_of_one_lies_in_its_interval_though_drawn_ties_stay_below_it() -> None:
    left, right = scores([1, 2, 3, 4, 5, 6, 7], noise=0.4), scores([1, 2, 3, 4, 5, 6, 7])
    found = rank_agreement(left, right, rng())
    assert found.low < found.correlation == found.high == pytest.approx(1)
    assert rank_agreement(left, scores([7, 6, 5, 4, 3, 2, 1]), rng()).low == pytest.approx(-1)


def test_few_variants_say_nothing() -> None:
    few = scores([float(at) for at in range(LEAST_VARIANTS - 1)])
    found = rank_agreement(few, few, rng())
    assert math.isnan(found.correlation)
    assert (found.low, found.high, found.p, found.variants) == (-1, 1, 1, LEAST_VARIANTS - 1)


def test_only_shared_variants_count() -> None:
    left, right = scores([1, 2, 3, 4, 5, 6]), scores([1, 2, 3, 4, 5])
    assert rank_agreement(left, {**right, "other": {0: 1.0}}, rng()).variants == 5


def test_a_task_on_which_all_tie_says_nothing() -> None:
    found = rank_agreement(scores([1.0] * 6), scores([1, 2, 3, 4, 5, 6]), rng())
    assert math.isnan(found.correlation)
    assert found.p == 1


def test_the_order_of_a_sum_breaks_no_tie() -> None:
    same = {f"v{at}": dict(enumerate((0.1, 0.2, 0.3)[:: (-1) ** at])) for at in range(6)}
    other = {f"v{at}": dict.fromkeys(range(3), float(at % 2)) for at in range(6)}
    found = rank_agreement(same, other, np.random.default_rng(0))
    assert math.isnan(found.correlation)
    assert found.p == 1.0


def test_noise_between_seeds_widens_the_interval() -> None:
    order = [float(at) for at in range(8)]
    quiet = rank_agreement(scores(order), scores(order), rng())
    loud = rank_agreement(scores(order, noise=2.0), scores(order), rng())
    assert loud.high - loud.low > quiet.high - quiet.low


def test_unrelated_orders_are_rarely_called_related() -> None:
    draw = np.random.default_rng(3)
    found = [
        rank_agreement(
            scores([*draw.normal(size=6)]), scores([*draw.normal(size=6)]), rng(), resamples=50
        ).p
        for _ in range(100)
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.1
