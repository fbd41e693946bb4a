"""The harness proves its own error rates: whole procedures run on data without a difference."""

import math
import runpy
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy import stats

import results
from reports.catalog import Catalog
from reports.ranked_table.grouping import comparisons
from results.statistics import (
    Hypothesis,
    decide,
    equivalence,
    holm,
    paired_difference,
    rank,
    ratio_interval,
    speed_verdict,
    t_interval,
)
from results.statistics.verdicts import Observed, findings_of

SLOW = pytest.mark.slow
ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "results" / "published"


def tabled(values: np.ndarray) -> dict[str, dict[int, float]]:
    return {f"v{row}": dict(enumerate(line.tolist())) for row, line in enumerate(values)}


def at_most(share: float, experiments: int) -> float:
    """Largest share that chance explains, three standard deviations above the true one."""
    return share + 3 * math.sqrt(share * (1 - share) / experiments)


def at_least(percent: float, experiments: int) -> float:
    """Smallest share that chance explains, of one that was rounded to whole percents."""
    share = max(0.0, percent - 0.005)
    return share - 3 * math.sqrt(share * (1 - share) / experiments)


@pytest.fixture(scope="module")
def simulation() -> dict[str, Any]:
    """The script that prints the tables of decision 23, with the rates that the decision states."""
    return runpy.run_path(str(ROOT / "tests" / "benchmarks" / "power_of_tests.py"))


@pytest.mark.parametrize(
    ("variants", "seeds", "experiments"),
    [
        (2, 3, 3000),
        pytest.param(6, 3, 2000, marks=pytest.mark.slow),
        pytest.param(6, 5, 2000, marks=pytest.mark.slow),
        pytest.param(9, 10, 600, marks=pytest.mark.slow),
    ],
)
def test_a_ranking_without_a_true_difference_makes_any_claim_in_five_percent(
    variants, seeds, experiments
):
    draw, claims = np.random.default_rng(variants * 100 + seeds), 0
    for _ in range(experiments):
        # Seeds are harder or easier for all variants alike, and variants differ in their spread.
        spread = draw.uniform(0.5, 2.0, size=(variants, 1))
        table = draw.normal(size=seeds) + spread * draw.normal(size=(variants, seeds))
        scores = {f"v{row}": dict(enumerate(line.tolist())) for row, line in enumerate(table)}
        lines = rank(scores, "higher", baseline="v0").lines
        claims += any(
            line.rank > 1
            or line.differs_from_best
            or line.better_than_baseline
            or line.worse_than_baseline
            for line in lines
        )
    assert claims / experiments <= at_most(0.05, experiments)


@pytest.mark.parametrize(
    ("misses", "variants", "seeds", "experiments"),
    [
        (1, 6, 3, 1000),
        (1, 2, 3, 2000),
        pytest.param(0.5, 6, 3, 1000, marks=pytest.mark.slow),
        pytest.param(2, 6, 3, 1000, marks=pytest.mark.slow),
        pytest.param(1, 6, 5, 1000, marks=pytest.mark.slow),
    ],
)
def test_scores_of_a_few_missed_tokens_make_any_claim_in_five_percent(
    misses, variants, seeds, experiments
):
    """Equal variants near the ceiling: one token of 1024 in each seed is soon a difference.

    With p = 0 for differences without spread, 13% to 20% of the tables of six variants and three
    seeds held a claim.
    """
    draw, claims = np.random.default_rng(int(1000 * misses) + variants * seeds), 0
    for _ in range(experiments):
        table = 1 - draw.poisson(misses, size=(variants, seeds)) / 1024
        scores = {f"v{row}": dict(enumerate(line.tolist())) for row, line in enumerate(table)}
        lines = rank(scores, "higher", baseline="v0").lines
        claims += any(
            line.rank > 1 or line.better_than_baseline or line.worse_than_baseline for line in lines
        )
    assert claims / experiments <= at_most(0.05, experiments)


def test_seeds_that_copy_one_draw_make_no_claim():
    """A fixed method on fixed data: its one score is a draw, and three seeds repeat it."""
    draw = np.random.default_rng(9)
    for _ in range(100):
        levels = draw.normal(size=6)
        noise = 1e-9 * draw.normal(size=(6, 3))
        scores = {
            f"v{row}": dict(enumerate((level + noise[row]).tolist()))
            for row, level in enumerate(levels)
        }
        assert {line.rank for line in rank(scores, "higher", baseline="v0").lines} == {1}


def spreads(draw: np.random.Generator, variants: int) -> np.ndarray:
    """Spreads of variants as wide as those of published runs: a factor of 5 is common."""
    return np.exp(0.75 * draw.normal(size=(variants, 1)))


@pytest.fixture(scope="module")
def published() -> list[tuple[np.ndarray, np.ndarray]]:
    """Spreads of the variants of each comparison of `modern`, and scores about their means.

    Spreads are relative to their median, and scores to their spread, as in decision 23.
    """
    run = results.load(PUBLISHED / "modern.parquet")
    found = []
    for one in comparisons(run.rows, Catalog.of(run.catalog)):
        table = np.array([[*by_seed.values()] for by_seed in one.scores.values()])
        widths = table.std(axis=1, ddof=1)
        moving = widths > 1e-9
        rests = (table - table.mean(axis=1, keepdims=True))[moving] / widths[moving, None]
        found.append((widths / np.median(widths[moving]), rests.ravel()))
    return found


def primary_claims(tables: Iterable[np.ndarray]) -> float:
    """Share of tables in which any primary hypothesis is decided."""
    found = [decide(tabled(one), "higher", baseline="v0", uniform="v1") for one in tables]
    return fmean(any(one.outcome != "undecided" for one in table.values()) for table in found)


@pytest.mark.parametrize(
    ("name", "seeds"),
    [("unequal", 3), *(pytest.param("one wide", seeds, marks=SLOW) for seeds in (3, 5, 8))],
)
def test_primary_hypotheses_without_a_true_difference_are_claimed_in_five_percent(name, seeds):
    draw, experiments = np.random.default_rng(4 + seeds), 600
    one_wide = np.array([1.0, 10.0, 1.0, 1.0])[:, None]
    claims = primary_claims(
        (spreads(draw, 4) if name == "unequal" else one_wide) * draw.normal(size=(4, seeds))
        for _ in range(experiments)
    )
    assert claims <= at_most(0.05, experiments)


def test_scores_drawn_again_from_published_rows_are_claimed_in_five_percent(published):
    """Equal means, and the spreads and the shapes of stored scores.

    A block design with one variance claims a difference in 12% of such tables.
    """
    draw, experiments = np.random.default_rng(3), 200

    def table() -> np.ndarray:
        widths, rests = published[draw.integers(len(published))]
        return draw.choice(widths, (9, 1)) * draw.choice(rests, (9, 3))

    claims = primary_claims(table() for _ in range(experiments))
    assert claims <= at_most(0.05, experiments)


@pytest.mark.parametrize(
    ("kind", "variants"), [("flaky", 9), ("mixed", 4), ("ceiling", 4), ("one fails", 4)]
)
def test_the_code_that_decides_is_wrong_as_often_as_decision_23_states(kind, variants, simulation):
    experiments = 600
    tables = simulation["Tables"](variants).draw(kind, (experiments, variants, 3))
    stated = simulation["stated"](kind, variants, 3)
    claims = primary_claims(tables)
    assert at_least(stated.least, experiments) <= claims <= at_most(stated.most, experiments)


@SLOW
@pytest.mark.parametrize("seeds", [3, 5, 8])
@pytest.mark.parametrize(
    ("variants", "count"), [(4, 20_000), (9, 20_000), (36, 4_000), (60, 4_000)]
)
def test_the_chosen_test_is_wrong_as_often_as_decision_23_states(
    variants, seeds, count, simulation
):
    """Whole tables at once, which the next tests hold to the code that decides."""
    tables, pairs = simulation["Tables"](100 * variants + seeds), simulation["primary"](variants)
    missed = {}
    for kind in simulation["KINDS"]:
        values = tables.draw(kind, (count, variants, seeds))
        p_values = simulation["holm"](simulation["moderated_variants"](values, pairs))
        share = float((p_values < 0.05).any(axis=1).mean())
        stated = simulation["stated"](kind, variants, seeds)
        if not at_least(stated.least, count) <= share <= at_most(stated.most, count):
            missed[kind] = (share, stated.text)
    assert not missed


def test_decision_23_quotes_the_rates_that_the_tests_hold(simulation):
    page = (ROOT / "docs" / "adr" / "023-decisions.md").read_text(encoding="utf-8")
    assert "\n".join(simulation["stated_table"]()) in page
    for kind, variants, seeds in product(simulation["KINDS"], (3, 4, 9, 36, 60), (3, 5, 8)):
        assert simulation["stated"](kind, variants, seeds)


def assert_that_decisions_agree(simulation: dict[str, Any], values: np.ndarray) -> None:
    """One table, by the simulation and by the code that decides."""
    pairs = simulation["primary"](len(values))
    found = simulation["holm"](simulation["moderated_variants"](values[None], pairs))[0]
    decisions = decide(tabled(values), "higher", baseline="v0", uniform="v1")
    expected = [decisions[Hypothesis(f"v{one}", f"v{two}")].p_adjusted for one, two in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_procedure_whose_errors_decision_23_prints_is_the_one_that_decides(simulation):
    """The simulation has a copy for whole tables at once."""
    draw = np.random.default_rng(23)
    for variants, seeds in ((2, 3), (4, 3), (9, 5)):
        values = draw.normal(size=seeds) + spreads(draw, variants) * draw.normal(
            size=(variants, seeds)
        )
        values[variants - 1] = 1.0
        assert_that_decisions_agree(simulation, values)


@pytest.mark.parametrize(
    "kind", ["equal", "wide", "flaky", "paired", "opposite", "mixed", "ceiling", "one fails"]
)
def test_both_decide_alike_on_every_kind_of_table_that_needs_no_published_rows(kind, simulation):
    tables = simulation["Tables"](24)
    for variants, seeds in ((4, 3), (9, 5), (12, 8)):
        for values in tables.draw(kind, (10, variants, seeds)):
            assert_that_decisions_agree(simulation, values)


@pytest.mark.parametrize("seeds", [3, pytest.param(5, marks=SLOW), pytest.param(8, marks=SLOW)])
def test_differences_at_the_margin_are_called_equivalent_in_five_percent(seeds):
    draw, claims, experiments = np.random.default_rng(seeds), 0, 600
    levels = np.array([0.0, 1.0, 1.0, -1.0, 1.0, -1.0])[:, None]
    for _ in range(experiments):
        values = levels + 0.4 * spreads(draw, 6) * draw.normal(size=(6, seeds))
        found = decide(tabled(values), "higher", baseline="v0", margin=1.0)
        claims += any(one.outcome == "equivalent" for one in found.values())
    assert claims / experiments <= at_most(0.05, experiments)


def scores_of_two(draw: np.random.Generator, kind: str, seeds: int) -> np.ndarray:
    """Two variants of one distribution."""
    noise = draw.normal(size=(2, seeds))
    if kind == "skewed":
        return 1 - draw.exponential(size=(2, seeds))
    if kind == "heavy":
        return draw.standard_t(3, size=(2, seeds))
    if kind == "flaky":
        # one run in ten does not learn, whatever the variant
        return noise - 20.0 * (draw.random((2, seeds)) < 0.1)
    if kind == "ceiling":
        return 1 - draw.poisson(0.5, size=(2, seeds)) / 256
    return 0.6 * noise + 0.8 * draw.normal(size=seeds) if kind == "paired" else noise


def spread_verdict(values: np.ndarray, margin: float = 0.0) -> str:
    """What a contrast of spreads says of two lines of scores."""
    left, right = (dict(enumerate(line.tolist())) for line in values)
    one = Observed(left=left, right=right, expect="higher", margin=margin, of="spread")
    return findings_of([one])[0].verdict


KINDS = ("equal", "skewed", "heavy", "flaky", "ceiling", "paired")


@pytest.mark.parametrize("seeds", [12, 24])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_spreads_are_called_different_in_five_percent(kind, seeds):
    draw, experiments = np.random.default_rng(seeds), 1000
    claims = sum(
        spread_verdict(scores_of_two(draw, kind, seeds)) != "undecided" for _ in range(experiments)
    )
    assert claims / experiments <= at_most(0.05, experiments)


@pytest.mark.parametrize("skewed", [False, True])
def test_a_spread_that_is_larger_by_the_margin_is_refuted_in_five_percent(skewed):
    draw, experiments = np.random.default_rng(13), 1000
    # mean distances from the median of 0.6 and 0.5
    unit = math.log(2) if skewed else math.sqrt(2 / math.pi)
    widths = np.array([[0.6], [0.5]]) / unit
    refuted = 0
    for _ in range(experiments):
        values = scores_of_two(draw, "skewed" if skewed else "equal", 24)
        refuted += spread_verdict(widths * values, 0.1) == "contradicted"
    assert refuted / experiments <= at_most(0.05, experiments)


def test_spreads_that_differ_by_a_factor_of_three_are_found_and_the_f_test_is_too_bold():
    draw, experiments = np.random.default_rng(14), 300
    wide = np.array([[3.0], [1.0]])
    found = bold = 0
    for _ in range(experiments):
        found += spread_verdict(wide * scores_of_two(draw, "equal", 24)) == "supported"
        one, other = scores_of_two(draw, "skewed", 24).var(axis=1, ddof=1)
        bold += 2 * stats.f.sf(max(one, other) / min(one, other), 23, 23) < 0.05
    assert found / experiments > 0.9
    assert bold / experiments > 0.15


def test_moderation_finds_more_than_plain_paired_tests_on_the_same_tables():
    """Why it is used: nine variants with unequal spreads, six deviations apart, three seeds."""
    draw, moderated, plain, experiments = np.random.default_rng(12), 0, 0, 100
    for _ in range(experiments):
        values = spreads(draw, 9) * draw.normal(size=(9, 3))
        values[2:] += 6
        table = tabled(values)
        found = decide(table, "higher", baseline="v0")
        moderated += sum(one.outcome == "better" for one in found.values())
        paired = [paired_difference(line, values[0]).p for line in values[1:]]
        plain += sum(p < 0.05 for p in holm(paired))
    assert moderated > 1.5 * plain


def test_a_ranking_with_some_true_differences_stays_honest_about_the_rest():
    """Three equal variants far above three equal ones: no claim inside either half."""
    draw, experiments, wrong, found = np.random.default_rng(4), 500, 0, 0
    for _ in range(experiments):
        levels = np.array([0, 0, 0, 40, 40, 40])[:, None]
        table = levels + draw.normal(size=(6, 5))
        scores = {f"v{row}": dict(enumerate(line.tolist())) for row, line in enumerate(table)}
        lines = {line.variant: line for line in rank(scores, "higher", baseline="v0").lines}
        wrong += (
            len({lines[name].rank for name in ("v3", "v4", "v5")}) > 1
            or any(lines[name].differs_from_best for name in ("v3", "v4", "v5"))
            or lines["v1"].p_adjusted < 0.05
            or lines["v2"].p_adjusted < 0.05
        )
        found += all(lines[name].better_than_baseline for name in ("v3", "v4", "v5"))
    assert wrong / experiments <= at_most(0.05, experiments)
    assert found / experiments > 0.95


def test_without_adjustment_the_same_table_would_be_wrong_four_times_as_often():
    """Guards the simulation itself: it must be able to see a procedure that is too bold."""
    draw, experiments, claims = np.random.default_rng(5), 500, 0
    for _ in range(experiments):
        table = draw.normal(size=(6, 5))
        claims += min(paired_difference(table[0], line).p for line in table[1:]) < 0.05
    assert claims / experiments > 0.12


def test_the_t_interval_of_three_seeds_covers_where_the_percentile_bootstrap_does_not():
    draw, experiments = np.random.default_rng(6), 3000
    samples = draw.normal(size=(experiments, 3))
    covered = sum(t_interval(sample).contains(0.0) for sample in samples) / experiments
    means = samples[np.arange(experiments)[:, None, None], draw.integers(3, size=(1, 400, 3))]
    low, high = np.quantile(means.mean(axis=2), [0.025, 0.975], axis=1)
    bootstrap = ((low <= 0) & (high >= 0)).mean()
    assert abs(covered - 0.95) <= at_most(0.05, experiments) - 0.05
    assert bootstrap < 0.85


def test_equivalence_is_claimed_at_the_margin_in_five_percent():
    draw, experiments = np.random.default_rng(7), 3000
    claims = sum(equivalence(draw.normal(1.0, 0.5, 5), 1.0).holds() for _ in range(experiments))
    assert claims / experiments <= at_most(0.05, experiments)


def machine(draw: np.random.Generator, samples: int) -> np.ndarray:
    """Times of one kernel on a machine that drifts 1.5%, wanders 0.4% and jitters 0.3%."""
    shocks = draw.normal(0, 0.004 * math.sqrt(1 - 0.99**2), samples)
    wander = np.empty(samples)
    state = draw.normal(0, 0.004)
    for at, shock in enumerate(shocks):
        state = 0.99 * state + shock
        wander[at] = state
    drift = 0.015 * np.exp(-np.arange(samples) / (0.3 * samples))
    return np.exp(drift + wander + draw.normal(0, 0.003, samples))


def test_two_equal_kernels_differ_when_timed_in_sequence_and_not_in_shuffled_rounds():
    """MEASUREMENT.md, section A: 98% false differences in sequence, 4.8% in rounds."""
    draw, experiments, rounds, visit = np.random.default_rng(8), 400, 20, 20
    sequential = in_rounds = verdicts = 0
    for _ in range(experiments):
        times = machine(draw, 3 * rounds * visit)
        half = times.size // 2
        first, second = np.log(times[:half]), np.log(times[half:])
        error = math.sqrt(first.var() / half + second.var() / half)
        sequential += abs(first.mean() - second.mean()) > 1.96 * error
        medians = np.median(times.reshape(rounds, 3, visit), axis=2)
        variant, reference, aa_control = draw.permuted(medians, axis=1).T
        logs = np.log(variant / reference)
        in_rounds += not ratio_interval(logs).contains(1.0)
        noise = ratio_interval(np.log(aa_control / reference))
        aa_half_width = max(1 - noise.low, noise.high - 1)
        verdicts += speed_verdict(logs, aa_half_width) in ("FAST", "SLOW")
    assert sequential / experiments > 0.9
    assert in_rounds / experiments <= at_most(0.05, experiments)
    assert verdicts == 0
