"""Primary hypotheses: what is tested, how it ends, and how many seeds would decide."""

import math

import numpy as np
import pytest
from scipy import stats

from results.looks import Looks
from results.statistics import (
    Hypothesis,
    ModeratedTable,
    SequentialTable,
    decide,
    primary_hypotheses,
    rank,
    seeds_to_decide,
)


def table_of(levels: dict[str, float], spread: float, seeds: int, draw=0):
    noise = np.random.default_rng(draw)
    return {
        name: {seed: level + spread * float(noise.normal()) for seed in range(seeds)}
        for name, level in levels.items()
    }


LEVELS = {"base": 0.5, "uniform": 0.2, "good": 0.9, "same": 0.501, "bad": 0.21, "aa": 0.5}


def test_what_is_tested_follows_from_names_alone():
    found = primary_hypotheses(LEVELS, baseline="base", uniform="uniform", controls=["aa"])
    assert found == [
        *[Hypothesis(name, "base") for name in ("good", "same", "bad")],
        *[Hypothesis(name, "uniform") for name in ("good", "same", "bad")],
        Hypothesis("base", "uniform"),
    ]
    assert primary_hypotheses(["a", "b"], baseline=None, uniform=None) == []
    assert primary_hypotheses(["a", "b"], baseline="b", uniform="b") == [Hypothesis("a", "b")]


def test_each_ending_occurs_where_it_should():
    scores = table_of(LEVELS, 0.01, 5)
    found = decide(
        scores, "higher", baseline="base", uniform="uniform", controls=["aa"], margin=0.05
    )
    outcomes = {tuple(pair): one.outcome for pair, one in found.items()}
    assert outcomes["good", "base"] == "better"
    assert outcomes["bad", "base"] == "worse"
    assert outcomes["same", "base"] == "equivalent"
    assert outcomes["base", "uniform"] == "better"
    assert outcomes["bad", "uniform"] == "equivalent"
    turned = decide(scores, "lower", baseline="base", uniform="uniform", margin=0.05)
    assert turned[Hypothesis("good", "base")].outcome == "worse"


def test_without_a_margin_nothing_is_equivalent_and_a_wrong_one_is_refused():
    scores = table_of(LEVELS, 0.01, 5)
    found = decide(scores, "higher", baseline="base")
    assert {one.outcome for one in found.values()} == {"better", "worse", "undecided"}
    assert all(math.isnan(one.p_equivalent) for one in found.values())
    with pytest.raises(ValueError, match="margin must be positive"):
        decide(scores, "higher", baseline="base", margin=0.0)


def test_what_is_open_says_how_many_seeds_would_decide_and_they_do():
    spread, levels = 0.1, {"base": 0.5, "new": 0.6, "x": 0.3, "y": 0.4, "z": 0.2}
    needed, right = [], 0
    for draw in range(40):
        found = decide(table_of(levels, spread, 3, draw), "higher", baseline="base")
        one = found[Hypothesis("new", "base")]
        if one.seeds_to_decide:
            needed.append(one.seeds_to_decide)
    middle = sorted(needed)[len(needed) // 2]
    for draw in range(40):
        found = decide(table_of(levels, spread, middle, 1000 + draw), "higher", baseline="base")
        right += found[Hypothesis("new", "base")].outcome == "better"
    assert right >= 20


def test_more_seeds_than_anybody_runs_are_not_named():
    table = ModeratedTable(table_of({"a": 0.5, "b": 0.5001, "c": 0.4}, 0.1, 5, draw=3))
    assert seeds_to_decide(table.difference("a", "b"), None, 1e-6) is None


def test_what_nobody_can_decide_says_so_and_what_is_unknown_does_not():
    scores = table_of({"base": 0.5, "near": 0.5001, "far": 0.9}, 0.1, 5, draw=3)
    found = decide(scores, "higher", baseline="base")
    near, far = (found[Hypothesis(name, "base")] for name in ("near", "far"))
    assert (near.outcome, near.seeds_to_decide, near.beyond_reach) == ("undecided", None, True)
    assert not far.beyond_reach
    still = {name: dict.fromkeys(range(3), 0.5) for name in ("base", "same")}
    (same,) = decide(still, "higher", baseline="base").values()
    assert (same.outcome, same.beyond_reach) == ("undecided", False)


@pytest.mark.parametrize(("levels", "margin"), [((0.5, 0.53), None), ((0.5, 0.47), 0.05)])
def test_seeds_are_the_fewest_with_which_t_tests_would_have_their_power(levels, margin):
    a, b = levels
    table = ModeratedTable(table_of({"a": a, "b": b, "c": 0.4, "d": 0.6}, 0.03, 3, draw=5))
    found, alpha = table.difference("a", "b"), 0.01

    def decides(count):
        error = found.error * math.sqrt(found.count / count)
        law = stats.t(found.freedom * count / found.count)
        if margin is None:
            return abs(found.estimate) >= (law.ppf(1 - alpha / 2) + law.ppf(0.8)) * error
        # either side of the margin is missed in half of the cases that may be missed
        return margin - abs(found.estimate) >= (law.ppf(1 - alpha) + law.ppf(0.9)) * error

    expected = next(count for count in range(4, 200) if decides(count))
    assert expected > 4
    assert seeds_to_decide(found, margin, alpha) == expected


def test_where_a_look_may_spend_a_part_of_the_error_rate_less_is_within_reach():
    scores = table_of({"base": 0.5, "new": 0.53, "x": 0.3, "y": 0.4}, 0.03, 3, draw=1)
    looked = SequentialTable(scores, scores, Looks(first=3))
    one, other = (
        decide(scores, "higher", baseline="base", table=table)[Hypothesis("new", "base")]
        for table in (ModeratedTable(scores), looked)
    )
    share = looked.difference("new", "base").share
    assert share < 1
    assert other.detectable == pytest.approx(one.difference.detectable(0.05 / 3 * share, 0.8))
    assert one.detectable < other.detectable
    assert one.seeds_to_decide < other.seeds_to_decide


def test_the_margin_decides_sooner_when_it_is_wider():
    table = ModeratedTable(table_of({"a": 0.5, "b": 0.5, "c": 0.4}, 0.02, 3, draw=5))
    found = table.difference("a", "b")
    seeds = [seeds_to_decide(found, margin, 0.01) or math.inf for margin in (0.03, 0.05, 0.1)]
    assert seeds[0] >= seeds[1] >= seeds[2]
    assert math.isfinite(seeds[2])


def test_a_line_of_a_ranking_has_its_tests_and_references_see_them_turned():
    ranking = rank(
        table_of(LEVELS, 0.01, 5),
        "higher",
        baseline="base",
        uniform="uniform",
        controls=["aa"],
        margin=0.05,
    )
    lines = {line.variant: line for line in ranking.lines}
    assert lines["good"].against_uniform.outcome == "better"
    assert lines["uniform"].against_baseline.outcome == "worse"
    assert lines["uniform"].worse_than_baseline
    assert lines["base"].against_baseline is None
    # a control is no contender: its test is one of all pairs, which can show no equivalence
    assert Hypothesis("aa", "base") not in ranking.tests.primary
    assert lines["aa"].against_baseline.outcome == "undecided"
    assert lines["aa"].p_adjusted == ranking.tests.pairs[frozenset(("aa", "base"))]
