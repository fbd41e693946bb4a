"""Differences with moderated variances, checked against other code and against their purpose."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from results.statistics import ModeratedTable, paired_difference


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


SCORES = st.integers(-5000, 5000).map(lambda whole: whole / 1000)
"""Scores of about four digits; smaller differences are rounding."""


def table_of(values) -> dict[str, dict[int, float]]:
    return {f"v{row}": dict(enumerate(map(float, line))) for row, line in enumerate(values)}


def by_hand(values: np.ndarray, left: int, right: int) -> tuple[float, float, float]:
    """Error, degrees of freedom and p of a full table, written from ADR 23."""
    variants, seeds = values.shape
    own = values.var(axis=1, ddof=1)
    common = min(own.mean(), 5 * np.median(own[own > 0]))
    prior = 1 - 2 / variants
    shrunk = (prior * common + (seeds - 1) * own) / (prior + seeds - 1)
    correlations = np.corrcoef(values)[np.triu_indices(variants, 1)]
    bound = np.arctanh(correlations.mean()) - 2 / math.sqrt((seeds - 1) * variants)
    correlation = max(0.0, math.tanh(bound)) if correlations.mean() > 0 else 0.0
    one, other = shrunk[left], shrunk[right]
    gaps = values[left] - values[right]
    squared = max(one + other - 2 * correlation * math.sqrt(one * other), gaps.var(ddof=1))
    error = math.sqrt(squared / seeds)
    freedom = (one + other) ** 2 / ((one**2 + other**2) / (prior + seeds - 1))
    return error, freedom, 2 * stats.t.sf(abs(gaps.mean()) / error, freedom)


@pytest.mark.parametrize("common", [0.0, 3.0, 30.0])
@pytest.mark.parametrize(("variants", "seeds"), [(3, 3), (9, 3), (5, 8)])
def test_it_agrees_with_the_formulas_of_the_decision_record(rng, variants, seeds, common):
    values = common * rng.normal(size=seeds) + rng.uniform(0.2, 3, (variants, 1)) * rng.normal(
        size=(variants, seeds)
    )
    table = ModeratedTable(table_of(values))
    assert (table.correlation > 0.5) == (common == 30.0)
    for other in range(1, variants):
        found = table.difference("v0", f"v{other}")
        error, freedom, p = by_hand(values, 0, other)
        assert found.error == pytest.approx(error)
        assert found.freedom == pytest.approx(freedom)
        assert found.p == pytest.approx(p)


def test_a_table_of_two_is_the_paired_t_test(rng):
    values = rng.normal(size=(2, 4)) + 3 * rng.normal(size=4)
    found = ModeratedTable(table_of(values)).difference("v0", "v1")
    plain = paired_difference(values[0], values[1])
    assert (found.p, found.low, found.high) == pytest.approx((plain.p, plain.low, plain.high))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(SCORES, min_size=3, max_size=3), min_size=2, max_size=6),
    st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_the_sides_agree_and_the_unit_does_not_matter(values, unit):
    table, scaled = (
        ModeratedTable(table_of(values)),
        ModeratedTable(table_of(np.array(values) * unit)),
    )
    found, back = table.difference("v0", "v1"), table.difference("v1", "v0")
    assert found.p == pytest.approx(back.p)
    assert found.estimate == pytest.approx(-back.estimate)
    assert scaled.difference("v0", "v1").p == pytest.approx(found.p, rel=1e-6, abs=1e-9)
    assert 0 <= found.p <= 1
    assert found.low <= found.estimate <= found.high


def test_a_perfect_score_differs_from_a_poor_one_by_the_spread_of_the_others():
    """The case that Holm over all pairs of three seeds could not tell: 0.997 against 0.30."""
    draw = np.random.default_rng(0)
    levels = [1.0, 0.997, 0.30, 0.95, 0.96, 0.93]
    values = [level + 0.01 * (level < 1) * draw.normal(size=3) for level in levels]
    table = ModeratedTable(table_of(values))
    assert table.difference("v0", "v2").p < 0.001


def test_one_variant_whose_seeds_fail_does_not_hide_the_others():
    draw = np.random.default_rng(1)
    values = [level + 0.001 * draw.normal(size=5) for level in (0.9, 0.8, 0.7)]
    values.append(np.array([0.9, 0.1, 0.9, 0.1, 0.9]))
    assert ModeratedTable(table_of(values)).difference("v0", "v1").p < 0.001


@pytest.mark.parametrize("lost", [(3e8, 1e7, 5e8), (3e8, 3e8, 3e8)])
def test_one_variant_that_diverges_does_not_make_the_spreads_of_others_look_like_rounding(lost):
    values = [(10.0, 10.2, 9.9), (5.0, 5.1, 5.2), lost]
    found = ModeratedTable(table_of(values)).difference("v1", "v0")
    assert found.p < 0.001
    assert -5.5 < found.low < found.high < -4.5


def test_rounding_around_zero_is_no_spread_beside_others():
    draw = np.random.default_rng(2)
    real = [level + 0.01 * draw.normal(size=5) for level in (0.5, 0.6)]
    noise = [1e-16 * draw.normal(size=5) for _ in range(4)]
    zeros = [np.zeros(5) for _ in range(4)]
    found, wanted = (
        ModeratedTable(table_of([*real, *more])).difference("v0", "v3") for more in (noise, zeros)
    )
    assert found.p == pytest.approx(wanted.p)


def test_without_any_spread_the_sign_test_decides():
    copies = {f"v{row}": dict.fromkeys(range(3), float(row)) for row in range(4)}
    found = ModeratedTable(copies).difference("v1", "v0")
    assert (found.p, found.error, found.high) == (0.25, 0.0, math.inf)
    assert ModeratedTable(copies).difference("v1", "v1").p == 1.0
    assert found.p_outside(2.0) == 0.125
    assert found.p_outside(0.5) == 1.0


def test_missing_seeds_are_left_out_of_pairs_and_kept_for_spreads():
    scores = {
        "a": {0: 1.0, 1: 1.1, 2: 0.9},
        "b": {0: 0.5, 1: 0.65, 5: 0.4},
        "c": {7: 0.2},
    }
    table = ModeratedTable(scores)
    assert table.difference("a", "b").count == 2
    assert table.difference("a", "b").error > 0
    assert table.difference("a", "c").count == 0
    assert table.difference("a", "c").p == 1.0


def test_the_correlation_of_unequal_seeds_is_a_bound_of_the_mean_over_pairs_that_move(rng):
    shared = 9 * rng.normal(size=6)
    lines = {
        name: {seed: float(shared[seed] + rng.normal()) for seed in seeds}
        for name, seeds in {"a": range(6), "b": range(4), "c": range(1, 6)}.items()
    }
    apart = {"still": dict.fromkeys(range(6), 2.0), "elsewhere": {8: 1.0, 9: 2.0}}
    scores = lines | apart
    cosines = []
    for left, right in combinations(lines.values(), 2):
        seeds = sorted(left.keys() & right.keys())
        drawn = [[line[seed] for seed in seeds] for line in (left, right)]
        cosines.append(np.corrcoef(drawn)[0, 1])
    freedom = np.mean([len(line) for line in scores.values()]) - 1
    bound = np.arctanh(np.mean(cosines)) - 2 / math.sqrt(freedom * len(scores))
    assert bound > 0.2
    assert ModeratedTable(scores).correlation == pytest.approx(math.tanh(bound))


def test_a_spread_that_is_rounding_beside_the_larger_of_two_scores_is_none():
    scores = {
        "large": {0: 1e6, 1: 1e6 + 0.1, 2: 1e6 - 0.1},
        "small": {0: 1.0, 1: 1.2, 2: 0.9},
        "other": {0: 1.1, 1: 1.0, 2: 0.7},
    }
    table = ModeratedTable(scores)
    assert table.difference("small", "other").error > 0
    found = table.difference("large", "small")
    assert (found.error, found.p) == (0.0, 0.25)


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        ModeratedTable({"a": {0: math.nan}})


def test_power_and_detectable_differences_agree_with_a_simulation():
    """Of tables whose difference is the detectable one, about 80% find it."""
    draw, found, experiments = np.random.default_rng(3), 0, 400
    error = math.sqrt(2 / 8)
    one = ModeratedTable(table_of(draw.normal(size=(8, 8)))).difference("v0", "v1")
    size = one.detectable(0.05) * error / one.error
    for _ in range(experiments):
        values = draw.normal(size=(8, 8))
        values[0] += size
        found += ModeratedTable(table_of(values)).difference("v0", "v1").p < 0.05
    assert 0.7 < found / experiments < 0.95
