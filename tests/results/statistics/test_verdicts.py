"""Verdicts on claims, on scores made for each of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from results.statistics.verdicts import Observed, findings_of, verdict_of

SPREAD = np.array([-0.02, 0.01, 0.03, -0.01, 0.0, -0.01])


def seen(mean, expect="higher", margin=0.1, spread=SPREAD):
    return Observed(
        left={200 + at: mean + float(gap) for at, gap in enumerate(spread)},
        right={200 + at: 0.0 for at in range(len(spread))},
        expect=expect,
        margin=margin,
    )


CASES = {
    "found": (seen(0.3), "supported"),
    "found downwards": (seen(-0.3, "lower"), "supported"),
    "the other way": (seen(-0.3), "contradicted"),
    "the other way upwards": (seen(0.3, "lower"), "contradicted"),
    "shown to be none": (seen(0.0), "contradicted"),
    "significant and shown to be too small": (seen(0.05), "contradicted"),
    "significant, but maybe at the margin": (seen(0.095), "undecided"),
    "no margin and no difference": (seen(0.0, margin=0.0), "undecided"),
    "wide, but surely below the margin": (seen(-0.1, spread=8 * SPREAD), "contradicted"),
    "the same, where less was expected": (seen(0.1, "lower", spread=8 * SPREAD), "contradicted"),
    "too small, without room for more": (replace(seen(0.05), room=0.19), "undecided"),
    "too small, with room for more": (replace(seen(0.05), room=0.21), "contradicted"),
    "the other way, without room": (replace(seen(-0.3), room=0.01), "contradicted"),
    "found, without room": (replace(seen(0.3), room=0.0), "supported"),
    "equal without room": (replace(seen(0.01, "equal"), room=0.0), "equivalent"),
    "found in networks that learned nothing": (replace(seen(0.3), learned=False), "undecided"),
    "the other way in such networks": (replace(seen(-0.3), learned=False), "undecided"),
    "equal": (seen(0.01, "equal"), "equivalent"),
    "not equal": (seen(0.3, "equal"), "contradicted"),
    "perhaps equal": (seen(0.0, "equal", spread=20 * SPREAD), "undecided"),
    "perhaps different": (seen(0.3, spread=30 * SPREAD), "undecided"),
    "one seed": (seen(0.9, spread=SPREAD[:1]), "undecided"),
    "no difference in any seed where one was expected": (
        seen(0.0, spread=np.zeros(6)),
        "undecided",
    ),
    "no difference in any seed where equality was": (
        seen(0.0, "equal", spread=np.zeros(6)),
        "equivalent",
    ),
    "six equal differences": (seen(1.0, spread=np.zeros(6)), "supported"),
    "five equal differences": (seen(1.0, spread=np.zeros(5)), "undecided"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_contrast_is_decided(case):
    observed, verdict = CASES[case]
    (found,) = findings_of([observed])
    assert found.verdict == verdict


def test_the_test_is_that_of_pairs():
    (found,) = findings_of([seen(0.02)])
    assert found.p == pytest.approx(stats.ttest_1samp(SPREAD + 0.02, 0.0).pvalue)
    upper = stats.ttest_1samp(SPREAD + 0.02, 0.1, alternative="less").pvalue
    assert found.p_outside == pytest.approx(upper)
    (found,) = findings_of([seen(-0.02, "lower")])
    assert found.p_outside == pytest.approx(
        stats.ttest_1samp(SPREAD - 0.02, -0.1, alternative="greater").pvalue
    )


def test_one_sample_has_intervals_of_its_level():
    (usual,), (second,) = (findings_of([seen(0.02)], level=level) for level in (0.05, 0.025))
    for found, level in ((usual, 0.95), (second, 0.975)):
        low, high = stats.t.interval(level, 5, (SPREAD + 0.02).mean(), stats.sem(SPREAD))
        assert (found.difference.low, found.difference.high) == pytest.approx((low, high))


def test_differences_of_rounding_alone_are_none():
    """Sides are sums, whose last digits depend on the order of their terms."""
    one = Observed(
        left=dict.fromkeys(range(6), 0.1 + 0.2),
        right=dict.fromkeys(range(6), 0.3),
        expect="higher",
        margin=0.05,
    )
    (found,) = findings_of([one])
    assert (found.verdict, found.still) == ("undecided", True)


def test_equal_differences_need_the_seeds_of_a_sign_test():
    one = seen(1.0, margin=0.3, spread=np.zeros(6))
    (found,) = findings_of([one], level=0.025, again=0.025)
    assert (found.verdict, found.seeds_to_decide) == ("undecided", 7)
    (found,) = findings_of([seen(1.0, margin=0.3, spread=np.zeros(7))], level=0.025)
    assert found.verdict == "supported"


def test_the_seeds_of_another_sample_are_counted_at_its_level():
    (same,), (again,) = (findings_of([seen(0.095)], again=again) for again in (0.0, 0.025))
    assert again.seeds_to_decide > same.seeds_to_decide


def scattered(left, right, margin=0.01, expect="higher", seeds=24):
    """Two series with these spreads, at levels that differ."""
    draw = np.random.default_rng(5)
    values = draw.normal(size=(2, seeds))
    return Observed(
        left=dict(enumerate(0.4 + left * values[0])),
        right=dict(enumerate(0.9 + right * values[1])),
        expect=expect,
        margin=margin,
        of="spread",
    )


SPREADS = {
    "wider": (scattered(0.09, 0.03), "supported"),
    "narrower": (scattered(0.03, 0.09), "contradicted"),
    "narrower as expected": (scattered(0.03, 0.09, expect="lower"), "supported"),
    "as wide": (scattered(0.03, 0.03, margin=0.05), "contradicted"),
    "as wide as expected": (scattered(0.03, 0.03, margin=0.05, expect="equal"), "equivalent"),
    "perhaps wider": (scattered(0.04, 0.03), "undecided"),
    "wider by less than the margin": (scattered(0.09, 0.03, margin=0.1), "contradicted"),
    "both without any": (scattered(0.0, 0.0), "undecided"),
    "both with rounding alone": (scattered(1e-12, 1e-13), "undecided"),
    "eleven seeds": (scattered(0.9, 0.001, seeds=11), "undecided"),
}


@pytest.mark.parametrize("case", SPREADS)
def test_a_spread_is_decided_whatever_the_level(case):
    observed, verdict = SPREADS[case]
    (found,) = findings_of([observed])
    assert found.verdict == verdict


def test_the_test_of_spreads_is_that_of_distances_from_the_median():
    one = scattered(0.06, 0.03)
    (found,) = findings_of([one])
    left, right = (np.array([*side.values()]) for side in (one.left, one.right))
    gaps = abs(left - np.median(left)) - abs(right - np.median(right))
    assert found.difference.estimate == pytest.approx(gaps.mean())
    assert found.p == pytest.approx(stats.ttest_1samp(gaps, 0.0).pvalue)
    lower = stats.ttest_1samp(gaps, 0.01, alternative="less").pvalue
    assert found.p_outside == pytest.approx(lower)


def test_a_median_is_that_of_the_seeds_of_both_sides():
    one = scattered(0.06, 0.03)
    more = {**one.left, 99: 50.0, 100: 60.0, 101: 70.0}
    longer = Observed(left=more, right=one.right, expect="higher", margin=0.01, of="spread")
    assert findings_of([longer]) == findings_of([one])


def test_no_fewer_seeds_decide_a_spread_than_its_test_needs():
    (found,) = findings_of([scattered(0.9, 0.03, seeds=11)])
    assert found.seeds_to_decide == 12


def test_without_common_seeds_nothing_is_known():
    (found,) = findings_of([Observed(left={200: 1.0}, right={201: 0.0}, expect="higher", margin=0)])
    assert (found.verdict, found.difference.count, found.seeds_to_decide) == ("undecided", 0, None)


def test_many_chances_to_hold_are_corrected_where_one_is_enough():
    # p is 0.03: enough alone, not as the best of four
    level = stats.t.ppf(1 - 0.015, 5) * SPREAD.std(ddof=1) / 6**0.5
    close, none = seen(float(level), margin=0.0), seen(0.0, margin=0.0)
    assert findings_of([close, none, none, none], "all")[0].verdict == "supported"
    assert findings_of([close, none, none, none], "any")[0].verdict == "undecided"


def test_many_chances_to_fail_are_corrected_where_all_must_hold():
    level = stats.t.ppf(1 - 0.015, 5) * SPREAD.std(ddof=1) / 6**0.5
    against, none = seen(-float(level), margin=0.0), seen(0.0, margin=0.0)
    assert findings_of([against, none, none], "any")[0].verdict == "contradicted"
    assert findings_of([against, none, none], "all")[0].verdict == "undecided"


def test_many_chances_to_be_too_small_are_corrected_where_all_must_hold():
    small, large = seen(0.085), seen(0.3)
    assert findings_of([small], "all")[0].verdict == "contradicted"
    assert findings_of([small, large, large, large], "all")[0].verdict == "undecided"


@pytest.mark.parametrize(
    ("parts", "needed", "verdict"),
    [
        (["supported", "supported"], "all", "supported"),
        (["supported", "equivalent"], "all", "supported"),
        (["equivalent", "equivalent"], "all", "equivalent"),
        (["supported", "undecided"], "all", "undecided"),
        (["supported", "contradicted"], "all", "contradicted"),
        (["undecided", "contradicted"], "all", "contradicted"),
        (["supported", "contradicted"], "any", "supported"),
        (["undecided", "contradicted"], "any", "undecided"),
        (["contradicted", "contradicted"], "any", "contradicted"),
        (["equivalent", "undecided"], "any", "equivalent"),
        ([], "all", "undecided"),
    ],
)
def test_parts_are_joined(parts, needed, verdict):
    assert verdict_of(parts, needed) == verdict


def test_the_seeds_that_would_decide_grow_with_the_spread():
    few, many = (findings_of([seen(0.3, spread=k * SPREAD)])[0].seeds_to_decide for k in (10, 30))
    assert few is not None
    assert many is not None
    assert few < many
    assert findings_of([seen(0.1, spread=SPREAD)])[0].seeds_to_decide is not None
