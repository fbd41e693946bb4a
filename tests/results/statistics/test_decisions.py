import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from results.statistics import equivalence, holm, speed_verdict

shares = st.floats(0, 1)


def test_holm_reproduces_a_worked_example():
    """Holm (1979) by hand: 0.01 x 4, 0.013 x 3 (raised to 0.04), 0.02 x 2 (raised), 0.04 x 1."""
    assert holm([0.04, 0.01, 0.013, 0.02]) == pytest.approx([0.04, 0.04, 0.04, 0.04])
    assert holm([0.005, 0.3, 0.02]) == pytest.approx([0.015, 0.3, 0.04])


def test_holm_counts_an_unknown_p_as_a_test_without_evidence():
    assert holm([0.01, math.nan]) == pytest.approx([0.02, 1.0])
    assert holm([]) == []


@settings(deadline=None)
@given(st.lists(shares, min_size=1, max_size=8))
def test_holm_never_strengthens_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(p_values)] == sorted(adjusted)
    assert min(adjusted) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


def test_equivalence_agrees_with_two_tests_of_scipy():
    values = np.random.default_rng(3).normal(0.1, 1, 20)
    above = stats.ttest_1samp(values, -0.8, alternative="greater").pvalue
    below = stats.ttest_1samp(values, 0.8, alternative="less").pvalue
    found = equivalence(values, 0.8)
    assert found.p == pytest.approx(max(above, below))


def test_equivalence_is_shown_and_never_assumed():
    assert equivalence([0.01, -0.01, 0.0, 0.01], 0.1).holds()
    assert not equivalence([0.5, -0.5, 0.3], 0.1).holds()
    assert not equivalence([0.0], 0.1).holds()
    assert not equivalence([], 0.1).holds()


def test_a_clear_difference_is_not_equivalent():
    assert not equivalence([0.5, 0.51, 0.49], 0.1).holds()


@pytest.mark.parametrize("noise", [0.0, 1e-17, 1e-9])
def test_differences_without_spread_inside_the_margin_need_five_equal_signs(noise):
    for count in (2, 3, 4, 5, 8):
        inside = equivalence([0.01 + noise * seed for seed in range(count)], 0.1)
        assert inside.p == pytest.approx(2.0**-count)
        assert inside.holds() == (count >= 5)
        assert equivalence([0.2 + noise * seed for seed in range(count)], 0.1).p == 1.0


def test_copies_of_one_timing_are_no_verdict():
    """No clock gives the same ratio each round; three copies are one measurement."""
    assert speed_verdict([math.log(0.5)] * 10, 0.001) == "AMBIGUOUS"
    assert speed_verdict([0.0] * 3, 0.001) == "AMBIGUOUS"


@pytest.mark.parametrize("margin", [0, -1, math.nan])
def test_a_margin_that_is_not_positive_is_refused(margin):
    with pytest.raises(ValueError, match="margin"):
        equivalence([1.0, 2.0], margin)


def around(ratio: float, spread: float = 0.001, rounds: int = 10) -> list[float]:
    return list(math.log(ratio) + spread * np.linspace(-1, 1, rounds))


@pytest.mark.parametrize(
    ("ratio", "spread", "aa_half_width", "verdict"),
    [
        (0.5, 0.001, 0.001, "FAST"),
        (2.0, 0.001, 0.001, "SLOW"),
        (1.0, 0.001, 0.001, "SAME"),
        (1.005, 0.001, 0.001, "SAME"),
        (1.0, 0.2, 0.001, "AMBIGUOUS"),
        (1.5, 1.5, 0.001, "AMBIGUOUS"),
        (1.05, 0.001, 0.03, "AMBIGUOUS"),
        (0.95, 0.001, 0.03, "AMBIGUOUS"),
        (1.05, 0.001, 0.022, "SLOW"),  # twice the error of the control is silent, no more
        (0.95, 0.001, 0.022, "FAST"),
        (1.012, 0.0001, 0.001, "SLOW"),  # and a percent, however quiet the control
        (0.988, 0.0001, 0.001, "FAST"),
        (0.5, 0.001, math.inf, "AMBIGUOUS"),
        (0.5, 0.001, math.nan, "AMBIGUOUS"),
    ],
)
def test_a_speed_is_claimed_only_outside_the_noise_of_the_control(
    ratio, spread, aa_half_width, verdict
):
    assert speed_verdict(around(ratio, spread), aa_half_width) == verdict


def test_one_round_is_never_a_verdict():
    assert speed_verdict([math.log(0.1)], 0.001) == "AMBIGUOUS"
    assert speed_verdict([], 0.001) == "AMBIGUOUS"
