import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.looks import Looks
from results.statistics import SequentialTable, rank

TIGHT = (0.0, 0.001, -0.001, 0.0005, -0.0005)


def around(level: float, noise=TIGHT) -> dict[int, float]:
    return {seed: level + step for seed, step in enumerate(noise)}


def wobble(level: float, spread: float = 0.001, phase: int = 0) -> dict[int, float]:
    draw = np.random.default_rng(phase)
    return {seed: level + spread * draw.normal() for seed in range(5)}


def test_clear_differences_get_ranks_of_their_own():
    table = rank(
        {"low": wobble(0.1), "high": wobble(0.9, phase=1), "middle": wobble(0.5, phase=2)},
        "higher",
        baseline="middle",
    ).lines
    assert [(line.rank, line.variant) for line in table] == [(1, "high"), (2, "middle"), (3, "low")]
    high, middle, low = table
    assert (high.better_than_baseline, high.worse_than_baseline) == (True, False)
    assert (low.better_than_baseline, low.worse_than_baseline) == (False, True)
    assert middle.difference is None
    assert math.isnan(middle.p_adjusted)
    assert high.difference.estimate == pytest.approx(0.4, abs=0.01)


def test_with_a_lower_better_side_the_order_turns_and_the_difference_does_not():
    table = rank({"a": wobble(0.1), "b": wobble(0.9, phase=1)}, "lower", baseline="b").lines
    assert [line.variant for line in table] == ["a", "b"]
    assert table[0].better_than_baseline
    assert table[0].difference.estimate < 0


def test_ties_are_shown_as_ties():
    scores = {
        "a": wobble(0.9, phase=1),
        "b": wobble(0.9002, phase=2),
        "c": wobble(0.1, phase=3),
        "d": wobble(0.1, phase=4),
    }
    assert [line.rank for line in rank(scores, "higher").lines] == [1, 1, 3, 3]


def test_a_noisy_variant_has_no_better_rank_than_its_mean_and_is_tied_with_the_best():
    scores = {"best": wobble(0.9), "good": wobble(0.8, phase=1), "noisy": wobble(0.5, 0.5, 2)}
    lines = {line.variant: line for line in rank(scores, "higher").lines}
    assert {name: line.rank for name, line in lines.items()} == {"best": 1, "good": 2, "noisy": 2}
    told = {name for name, line in lines.items() if line.differs_from_best}
    assert told == {"good"}


def test_no_two_of_a_rank_differ_though_neither_differs_from_the_best():
    """The leader is noisy: it differs from nothing, and the others from each other."""
    scores = {"noisy": wobble(1.0, 0.5, 1), "good": wobble(0.9), "low": wobble(0.5, phase=2)}
    lines = rank(scores, "higher", baseline="good").lines
    assert [(line.variant, line.rank) for line in lines] == [("noisy", 1), ("good", 1), ("low", 3)]
    assert lines[2].worse_than_baseline
    assert not lines[2].differs_from_best


@settings(max_examples=200, deadline=None)
@given(
    table=st.lists(
        st.tuples(st.floats(-1, 1), st.sampled_from([0.0, 0.01, 0.1, 1.0])), min_size=1, max_size=9
    ),
    seeds=st.integers(1, 5),
    better=st.sampled_from(["higher", "lower"]),
    draw=st.integers(0, 2**32 - 1),
)
def test_ranks_never_invert_the_means(table, seeds, better, draw):
    noise = np.random.default_rng(draw)
    scores = {
        f"v{row}": dict(enumerate(level + spread * noise.normal(size=seeds)))
        for row, (level, spread) in enumerate(table)
    }
    lines = rank(scores, better, baseline="v0").lines
    sign = 1 if better == "higher" else -1
    means = [sign * line.mean.estimate for line in lines]
    assert all(high >= low - 1e-9 for high, low in pairwise(means))
    assert all(high.rank <= low.rank for high, low in pairwise(lines))
    for place, line in enumerate(lines, start=1):
        first = next(at for at, other in enumerate(lines, start=1) if other.rank == line.rank)
        assert line.rank == first <= place
        # a rank is a place: whoever is on the first one differs from nobody there
        assert not (line.rank == 1 and line.differs_from_best)
    assert not lines[0].differs_from_best


def test_equal_means_keep_the_order_in_which_they_were_given():
    thirds = {0: 0.1, 1: 0.2, 2: 0.3}
    turned = {0: 0.3, 1: 0.2, 2: 0.1}
    for names in ("zab", "baz"):
        scores = {name: thirds if name == "a" else turned for name in names}
        assert [line.variant for line in rank(scores, "higher").lines] == [*names]


def test_one_seed_makes_no_claim():
    table = rank({"a": {0: 1.0}, "b": {0: 0.0}}, "higher", baseline="b").lines
    assert [line.rank for line in table] == [1, 1]
    assert table[0].p_adjusted == 1.0
    assert table[0].mean.high == math.inf


def test_only_common_seeds_are_compared():
    table = rank(
        {"a": {0: 2.0, 1: 3.0, 7: 99.0}, "b": {0: 1.0, 1: 2.5}}, "higher", baseline="b"
    ).lines
    assert table[0].difference.count == 2
    assert table[0].difference.estimate == pytest.approx(0.75)
    strangers = rank({"a": {0: 2.0}, "b": {1: 1.0}}, "higher", baseline="b").lines
    assert strangers[0].p_adjusted == 1.0
    assert math.isnan(strangers[0].difference.estimate)


FAILED_LATER = {
    "new": dict(enumerate((0.800, 0.803, 0.799))),
    "base": dict(enumerate((0.900, 0.898, 0.902, 0.30, 0.31))),
    "low": dict(enumerate((0.5, 0.502, 0.499, 0.503, 0.498))),
}
"""The reference got two more seeds, which failed: its mean is the worse one, and its seeds are not
where both have one."""


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_where_seeds_differ_the_direction_is_that_of_the_difference_that_was_tested(better):
    sign = 1 if better == "higher" else -1
    scores = {
        name: {seed: sign * score for seed, score in by_seed.items()}
        for name, by_seed in FAILED_LATER.items()
    }
    table = SequentialTable(scores, scores, Looks(first=3))
    found = rank(scores, better, baseline="base", table=table)
    lines = {line.variant: line for line in found.lines}
    assert [*lines] == ["new", "base", "low"], "in the order of the means"
    assert lines["new"].worse_than_baseline
    assert found.tests.p_better("base", "new") < 0.05
    assert math.isnan(found.tests.p_better("new", "base"))
    assert found.tests.pairs[frozenset(("new", "base"))] < 0.05
    assert [line.rank for line in found.lines] == [1, 1, 3], "ranks never invert what was tested"
    assert not lines["base"].differs_from_best


def test_of_equal_seeds_the_direction_is_that_of_the_means():
    draw = np.random.default_rng(0)
    for _ in range(30):
        scores = {name: dict(enumerate(draw.normal(size=4))) for name in "abcd"}
        found = rank(scores, "lower", baseline="a")
        for above, below in combinations([line.variant for line in found.lines], 2):
            assert found.tests.ahead[frozenset((above, below))] == above
            assert found.tests.p_better(above, below) == found.tests.p(above, below)
            assert math.isnan(found.tests.p_better(below, above))


def test_of_two_that_are_equal_but_for_rounding_or_share_no_seed_neither_is_better():
    thirds, turned = {0: 0.1, 1: 0.2, 2: 0.3}, {0: 0.3, 1: 0.2, 2: 0.1}
    tests = rank({"a": thirds, "b": turned, "c": {7: 0.9}}, "higher").tests
    assert set(tests.ahead.values()) == {""}
    assert math.isnan(tests.p_better("c", "a"))


def test_pairing_by_seed_finds_what_hard_seeds_hide():
    hard = {0: 0.1, 1: 0.9, 2: 0.4, 3: 0.7, 4: 0.2}
    better = {seed: score + 0.05 + TIGHT[seed] for seed, score in hard.items()}
    table = rank({"base": hard, "new": better}, "higher", baseline="base").lines
    assert table[0].better_than_baseline


def test_a_variant_without_scores_is_left_out():
    assert [line.variant for line in rank({"a": around(1.0), "b": {}}, "higher").lines] == ["a"]
    assert rank({}, "higher").lines == []


def test_a_baseline_without_scores_is_refused():
    with pytest.raises(ValueError, match="'b' has no scores"):
        rank({"a": around(1.0), "b": {}}, "higher", baseline="b")


def test_a_tie_is_never_significant_in_the_same_table():
    draw, tied, apart = np.random.default_rng(0), 0, 0
    for _ in range(30):
        scores = {
            name: dict(enumerate(level + 0.05 * draw.normal(size=4)))
            for name, level in zip("abcdef", np.linspace(0, 0.25, 6), strict=True)
        }
        found = rank(scores, "higher", baseline="a")
        for above, below in combinations(found.lines, 2):
            p = found.tests.pairs[frozenset((above.variant, below.variant))]
            if above.rank == below.rank:
                assert p >= 0.05
                tied += 1
            apart += p < 0.05
        top, mine = found.lines[0], next(line for line in found.lines if line.variant == "a")
        # the planned tests are fewer, and find what those of all pairs find
        assert top.better_than_baseline or not mine.differs_from_best
    assert min(tied, apart) > 50


def test_one_token_in_each_of_three_seeds_is_no_rank():
    scores = {"all": dict.fromkeys(range(3), 1.0), "but_one": dict.fromkeys(range(3), 1023 / 1024)}
    best, other = rank(scores, "higher", baseline="but_one").lines
    assert (best.rank, other.rank) == (1, 1)
    assert not best.better_than_baseline
    assert best.p_adjusted == pytest.approx(0.25)
    assert best.difference.high == math.inf


def test_seeds_that_draw_nothing_are_copies_and_tell_nothing_apart():
    """Fixed kernels on a split that no seed changes; rounding differs from seed to seed."""
    levels = (2780.48835, 2891.01, 3955.87, 5217.03, 9000.0)
    scores = {
        f"kernel_{at}": {seed: level + 1e-4 * seed for seed in range(3)}
        for at, level in enumerate(levels)
    }
    lines = rank(scores, "lower", baseline="kernel_4").lines
    assert {line.rank for line in lines} == {1}
    assert not any(line.better_than_baseline for line in lines)


def test_equal_differences_of_many_seeds_are_evidence():
    scores = {"a": dict.fromkeys(range(8), 0.9), "b": dict.fromkeys(range(8), 0.8)}
    assert [line.rank for line in rank(scores, "higher").lines] == [1, 2]
