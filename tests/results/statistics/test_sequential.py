"""Several looks at the same comparison, at the error rate of one: what is decided stays so."""

import math
from itertools import pairwise

import numpy as np
import pytest

from results.looks import Looks
from results.statistics import Hypothesis, ModeratedTable, SequentialTable, decide, rank

SLOW = pytest.mark.slow
LOOKS = Looks(first=3)
COUNTS = (3, 5, 8, 13, 21)


def scores_of(values: np.ndarray, seeds=None) -> dict[str, dict[int, float]]:
    """Scores of `v0`, `v1` ...; a line has its first seeds where their number is given."""
    counts = seeds or [values.shape[1]] * len(values)
    return {
        f"v{row}": dict(enumerate(line[:count].tolist()))
        for row, (line, count) in enumerate(zip(values, counts, strict=True))
    }


def grown(values: np.ndarray, most: int = 21, **asked) -> tuple[list[dict], dict[str, int]]:
    """Run look by look: the decisions after each, and the seeds of every variant at the end."""
    seeds, found = [3] * len(values), []
    for count, following in zip(COUNTS, (*COUNTS[1:], None), strict=True):
        if count > most:
            break
        scores = scores_of(values, seeds)
        table = SequentialTable(scores, scores, LOOKS)
        found.append(decide(scores, "higher", baseline="v0", table=table, **asked))
        open_ = {name for pair, one in found[-1].items() if not one.decided for name in pair}
        if following and following <= most:
            seeds = [following if f"v{row}" in open_ else now for row, now in enumerate(seeds)]
    return found, {f"v{row}": count for row, count in enumerate(seeds)}


@pytest.fixture
def values():
    rng = np.random.default_rng(3)
    return np.array([0.0, 0.1, 1.0, 3.0])[:, None] + rng.normal(size=(4, 21))


def test_the_p_value_is_the_least_of_all_looks_over_their_shares(values):
    scores = scores_of(values)
    table, by_hand, outside = SequentialTable(scores, scores, LOOKS), [], []
    for number, count in enumerate(COUNTS, start=1):
        plain = ModeratedTable(scores_of(values[:, :count])).difference("v3", "v0")
        by_hand.append(plain.p / (0.25 * 0.75 ** (number - 1)))
        outside.append(plain.p_outside(5.0) / (0.25 * 0.75 ** (number - 1)))
    found = table.difference("v3", "v0")
    assert found.p == pytest.approx(min(by_hand))
    assert found.p_outside(5.0) == pytest.approx(min(1.0, *outside))
    assert (found.count, len(found.looked)) == (21, 5)


def test_p_values_beyond_and_short_of_a_margin_are_of_all_looks_too(values):
    scores = scores_of(values)
    found = SequentialTable(scores, scores, LOOKS).difference("v3", "v0")
    plain = [
        (0.25 * 0.75**number, ModeratedTable(scores_of(values[:, :count])).difference("v3", "v0"))
        for number, count in enumerate(COUNTS)
    ]
    beyond = [one.p_beyond(1.0) / share for share, one in plain]
    short = [one.p_short(4.0) / share for share, one in plain]
    assert found.p_beyond(1.0) == pytest.approx(min(1.0, *beyond))
    assert found.p_short(4.0) == pytest.approx(min(1.0, *short))
    # a margin of next to nothing is no other question than none
    assert found.p_beyond(0.0) == found.p
    assert found.p_beyond(1e-9) == pytest.approx(found.p)
    assert found.p_beyond(1e-9) > plain[-1][1].p_beyond(1e-9)


def test_a_pair_without_a_look_is_neither_beyond_nor_short_of_a_margin(values):
    scores = scores_of(values[:, :2])
    found = SequentialTable(scores, scores, LOOKS).difference("v3", "v0")
    assert (found.p_beyond(0.1), found.p_short(100.0), found.p_outside(100.0)) == (1.0, 1.0, 1.0)


def test_the_interval_excludes_zero_where_the_p_value_of_its_look_is_small_enough(values):
    for shift in np.linspace(0, 3, 31):
        scores = scores_of(values[:, :3] + np.array([0, 0, 0, shift])[:, None])
        found = SequentialTable(scores, scores, LOOKS).difference("v3", "v0")
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_a_look_counts_only_when_all_its_seeds_have_been_run(values):
    scores = scores_of(values, [4, 5, 8, 2])
    table = SequentialTable(scores, scores, LOOKS)
    assert len(table.difference("v1", "v2").looked) == 2
    # the fourth seed of the baseline is not looked at before the fifth is there
    half = table.difference("v1", "v0")
    first = SequentialTable(scores_of(values, [3, 3, 3, 2]), scores, LOOKS)
    assert (half.count, half.p) == (3, first.difference("v1", "v0").p)
    before = table.difference("v3", "v0")
    assert (before.p, before.looked) == (1.0, ())
    assert math.isfinite(before.estimate)


def test_a_seed_without_a_score_does_not_hold_up_the_look(values):
    scores = scores_of(values[:, :3])
    ended = {name: range(3) for name in scores}
    del scores["v1"][1]
    found = SequentialTable(scores, ended, LOOKS).difference("v1", "v0")
    assert (found.count, len(found.looked)) == (2, 1)
    assert SequentialTable(scores, scores, LOOKS).difference("v1", "v0").p == 1.0


def test_later_seeds_are_as_if_they_were_not_there_before_their_look(values):
    scores = scores_of(values)
    for number, count in enumerate(COUNTS, start=1):
        short = scores_of(values[:, :count])
        assert SequentialTable(scores, scores, LOOKS, number).difference(
            "v2", "v0"
        ) == SequentialTable(short, short, LOOKS).difference("v2", "v0")


@pytest.mark.parametrize("draw", range(8))
def test_what_is_decided_stays_decided_however_many_seeds_follow(draw):
    rng = np.random.default_rng(draw)
    values = rng.uniform(0, 4, (5, 1)) + rng.uniform(0.2, 2, (5, 1)) * rng.normal(size=(5, 21))
    found, seeds = grown(values, uniform="v1", margin=1.5)
    for before, after in pairwise(found):
        for pair, one in before.items():
            assert not one.decided or after[pair].decided
            assert after[pair].p_adjusted <= one.p_adjusted
    settled = {name for pair in found[0] for name in pair} - {
        name for pair, one in found[0].items() if not one.decided for name in pair
    }
    assert all(seeds[name] == 3 for name in settled)


def test_an_early_better_never_becomes_a_significant_worse():
    scores = {
        "base": dict(enumerate([0.900, 0.901, 0.899, 0.900, 0.9005])),
        "new": dict(enumerate([0.951, 0.950, 0.949, 0.30, 0.35])),
        "other": dict(enumerate([0.500, 0.499, 0.501, 0.500, 0.5005])),
    }
    early = {name: {seed: by_seed[seed] for seed in range(3)} for name, by_seed in scores.items()}
    outcomes = [
        decide(one, "higher", baseline="base", table=SequentialTable(one, one, LOOKS))
        for one in (early, scores)
    ]
    pair = Hypothesis("new", "base")
    assert [found[pair].outcome for found in outcomes] == ["better", "undecided"]
    difference = SequentialTable(scores, scores, LOOKS).difference("new", "base")
    assert difference.estimate < 0
    assert difference.p > 0.05
    assert difference.p_beyond(0.01) > 0.05
    assert len(difference.looked) == 2, "equivalence is asked at both looks"


def test_a_ranking_by_looks_has_the_decisions_and_separates_fewer_pairs(values):
    scores = scores_of(values)
    table = SequentialTable(scores, scores, LOOKS)
    looked = rank(scores, "higher", baseline="v0", table=table).tests
    once = rank(scores, "higher", baseline="v0").tests
    assert looked.primary == decide(scores, "higher", baseline="v0", table=table)
    # all seeds of all looks are here, and the last look may spend 8% of the error rate
    assert all(looked.pairs[pair] >= once.pairs[pair] for pair in once.pairs)


def drawn(rng: np.random.Generator, name: str, variants: int) -> np.ndarray:
    noise, common = rng.normal(size=(variants, 13)), rng.normal(size=(1, 13))
    if name == "unequal":
        return np.exp(0.75 * rng.normal(size=(variants, 1))) * noise
    if name == "flaky":
        return noise - 20.0 * (rng.random(noise.shape) < 0.1)
    if name == "opposite":
        return 2 * common * rng.choice([-1, 1], (variants, 1)) + noise
    return noise


def claims(name: str, variants: int, experiments: int) -> float:
    """Share of runs without a true difference in which seeds are added until one is claimed."""
    rng, found = np.random.default_rng(variants), 0
    for _ in range(experiments):
        last = grown(drawn(rng, name, variants), most=13, uniform="v1")[0][-1]
        found += any(one.decided for one in last.values())
    return found / experiments


def at_most(share: float, experiments: int) -> float:
    return share + 3 * math.sqrt(share * (1 - share) / experiments)


@pytest.mark.parametrize(
    ("name", "variants", "experiments"),
    [
        ("unequal", 4, 200),
        *(
            pytest.param(name, variants, 300, marks=SLOW)
            for name in ("equal", "unequal", "flaky", "opposite")
            for variants in (4, 9)
        ),
    ],
)
def test_all_looks_together_claim_a_difference_that_is_not_there_in_five_percent(
    name, variants, experiments
):
    assert claims(name, variants, experiments) <= at_most(0.05, experiments)


@SLOW
def test_looks_that_spend_nothing_would_claim_too_much(monkeypatch):
    """Guards the simulation itself: testing at 5% at each look is wrong twice as often."""
    monkeypatch.setattr(Looks, "share", lambda self, number: 1.0)
    assert claims("equal", 4, 500) > 0.07


@SLOW
def test_differences_at_the_margin_are_called_equivalent_in_five_percent():
    rng, found, experiments = np.random.default_rng(5), 0, 400
    for _ in range(experiments):
        levels = np.array([0.0, 1.0, 1.0, -1.0, 1.0])[:, None]
        values = levels + 0.4 * np.exp(0.5 * rng.normal(size=(5, 1))) * rng.normal(size=(5, 13))
        last = grown(values, most=13, margin=1.0)[0][-1]
        found += any(one.outcome == "equivalent" for one in last.values())
    assert found / experiments <= at_most(0.05, experiments)


@SLOW
def test_added_seeds_decide_more_than_as_many_seeds_for_all():
    """Why it is used: half of the variants are clearly apart, and half nearly equal."""
    rng, cells, added, fixed = np.random.default_rng(6), 0, 0, 0
    tables = [
        np.array([0, -9, 6, 9, 12, 0.5, 1, 2])[:, None]
        + np.exp(0.5 * rng.normal(size=(8, 1))) * rng.normal(size=(8, 21))
        for _ in range(40)
    ]
    for values in tables:
        found, seeds = grown(values, uniform="v1", margin=2.0)
        cells += sum(seeds.values())
        added += sum(one.decided for one in found[-1].values())
    count = math.ceil(cells / (8 * len(tables)))
    for values in tables:
        scores = scores_of(values[:, :count])
        found = decide(scores, "higher", baseline="v0", uniform="v1", margin=2.0)
        fixed += sum(one.decided for one in found.values())
    assert count < 14
    assert added > fixed


def test_before_the_first_look_the_interval_is_as_wide_as_that_of_a_first_look(values):
    scores = scores_of(values, [2, 2, 2, 2])
    table = SequentialTable(scores, scores, LOOKS)
    plain = ModeratedTable(scores)
    for level in (0.95, 0.99):
        found = table.difference("v3", "v0", level)
        wanted = plain.difference("v3", "v0", 1 - 0.25 * (1 - level))
        assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
        assert found.p == 1.0
