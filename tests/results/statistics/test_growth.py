"""Growth exponents: planted ones are covered as often as promised, and bent ones are told."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results.statistics import STRAIGHT_WITHIN, growth

RUNS = 400


def timed(
    rng: np.random.Generator,
    sizes: tuple[float, ...],
    rounds: tuple[int, ...],
    noise: tuple[float, ...],
    exponent: float,
    bend: Callable[[float], float] = lambda log: 0.0,
) -> dict[float, list[float]]:
    """Log times of rounds with a planted exponent, and a part that no line has."""
    return {
        size: [
            *(3 + exponent * math.log(size) + bend(math.log(size)) + spread * rng.normal(size=many))
        ]
        for size, many, spread in zip(sizes, rounds, noise, strict=True)
    }


@pytest.mark.parametrize(
    ("sizes", "rounds", "noise", "least"),
    [
        ((256, 1024), (16, 16), (0.1, 0.1), 0.93),
        ((256, 1024, 4096), (12, 12, 5), (0.1, 0.05, 0.03), 0.93),
        # the fewest rounds, and the most noise, where they count most
        ((256, 1024, 4096), (16, 6, 3), (0.05, 0.1, 0.1), 0.905),
        ((64, 128, 256, 512), (5, 5, 5, 5), (0.02, 0.05, 0.1, 0.2), 0.93),
        ((256, 1024, 8192, 16384, 32768), (16, 16, 5, 4, 3), (0.1, 0.1, 0.1, 0.1, 0.1), 0.92),
    ],
)
def test_a_planted_exponent_is_covered_in_about_95_percent_of_runs(sizes, rounds, noise, least):
    rng = np.random.default_rng(3)
    found = [growth(timed(rng, sizes, rounds, noise, 1.3)).slope for _ in range(RUNS)]
    share = np.mean([one.contains(1.3) for one in found])
    assert least < share < 0.98
    assert np.mean([one.estimate for one in found]) == pytest.approx(1.3, abs=0.01)


def test_skewed_rounds_are_covered_nearly_as_often():
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(RUNS):
        logs = {
            size: [*(1.7 * math.log(size) + 0.1 * rng.exponential(size=12))]
            for size in (256.0, 1024.0, 4096.0)
        }
        covered.append(growth(logs).slope.contains(1.7))
    assert 0.92 < np.mean(covered) < 0.98


@pytest.mark.parametrize("sizes", [(256, 1024, 4096), (256, 1024, 4096, 8192, 32768)])
@pytest.mark.parametrize("noise", [0.001, 0.02, 0.1])
def test_a_straight_line_is_called_not_straight_in_5_percent_of_runs_at_most(sizes, noise):
    rng = np.random.default_rng(5)
    many = len(sizes)
    lines = [
        growth(timed(rng, sizes, (8,) * many, (noise,) * many, 1.0)).line for _ in range(RUNS // 2)
    ]
    assert np.mean([line == "not straight" for line in lines]) < 0.05 + 0.015


def test_a_bend_as_large_as_the_limit_is_called_straight_in_5_percent_of_runs_at_most():
    rng = np.random.default_rng(6)
    step = math.log(4)

    def bent(log: float) -> float:
        return STRAIGHT_WITHIN * max(0.0, log - math.log(1024))

    lines = [
        growth(timed(rng, (256, 1024, 4096), (8, 8, 8), (0.02 * step,) * 3, 1.0, bent)).line
        for _ in range(RUNS)
    ]
    assert np.mean([line == "straight" for line in lines]) < 0.05 + 0.015
    assert np.mean([line == "not straight" for line in lines]) < 0.05 + 0.015


def test_times_with_a_fixed_cost_are_not_straight_and_their_pieces_say_how():
    rng = np.random.default_rng(7)
    logs = {
        size: [*(math.log(1000 + size) + 0.05 * rng.normal(size=12))]
        for size in (256.0, 1024.0, 4096.0)
    }
    found = growth(logs)
    assert found.line == "not straight"
    first, second = found.pieces
    assert first < 0.5 < second


def test_a_line_with_little_noise_is_straight_and_one_with_much_is_not_told():
    rng = np.random.default_rng(8)
    sizes, rounds = (256, 1024, 4096), (12, 12, 12)
    assert growth(timed(rng, sizes, rounds, (0.01,) * 3, 2.0)).line == "straight"
    assert growth(timed(rng, sizes, rounds, (0.3,) * 3, 2.0)).line == "not told"
    assert growth(timed(rng, sizes[:2], rounds[:2], (0.01,) * 2, 2.0)).line == "not told"


def test_two_sizes_give_the_interval_of_welch():
    rng = np.random.default_rng(9)
    logs = timed(rng, (256, 1024), (5, 9), (0.2, 0.1), 1.0)
    found = growth(logs).slope
    test = stats.ttest_ind(logs[1024], logs[256], equal_var=False).confidence_interval()
    assert found.low == pytest.approx(test.low / math.log(4))
    assert found.high == pytest.approx(test.high / math.log(4))


def test_the_slope_is_that_of_least_squares_through_the_means_whatever_the_noise():
    logs = {2.0: [0.0, 0.2], 4.0: [1.0, 1.4, 0.9], 16.0: [2.0, 2.0001]}
    means = [float(np.mean(of_size)) for of_size in logs.values()]
    assert growth(logs).slope.estimate == pytest.approx(
        stats.linregress(np.log(list(logs)), means).slope
    )


@given(
    exponent=st.floats(-2, 3),
    sizes=st.lists(st.integers(1, 10**6), min_size=3, max_size=6, unique=True),
)
def test_an_exact_power_law_has_its_exponent_everywhere_and_no_interval(exponent, sizes):
    found = growth({size: [exponent * math.log(size)] for size in sizes}, exact=True)
    assert found.slope.estimate == pytest.approx(exponent, abs=1e-6)
    assert found.pieces == pytest.approx([exponent] * (len(sizes) - 1), abs=1e-6)
    assert (found.slope.low, found.slope.high, found.line) == (-math.inf, math.inf, "straight")


def test_counts_that_bend_are_told_without_any_noise():
    counts = {size: [math.log(size + size**2 / 1000)] for size in (256.0, 1024.0, 4096.0)}
    assert growth(counts, exact=True).line == "not straight"


@pytest.mark.parametrize("of_size", [[1.0], [1.0, 1.0, 1.0]])
def test_a_size_without_spread_bounds_nothing(of_size):
    found = growth({1.0: of_size, 2.0: [2.0, 2.1], 4.0: [3.0, 3.1]})
    assert math.isfinite(found.slope.estimate)
    assert (found.slope.low, found.slope.high, found.line) == (-math.inf, math.inf, "not told")


@pytest.mark.parametrize("logs", [{}, {64.0: [1.0, 1.1]}, {64.0: [1.0, 1.1], 128.0: []}])
def test_fewer_than_two_sizes_give_no_exponent(logs):
    found = growth(logs)
    assert math.isnan(found.slope.estimate)
    assert (found.slope.high, found.pieces) == (math.inf, ())
