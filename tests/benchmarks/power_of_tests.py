"""Error rates and power of procedures that could decide primary hypotheses: the tables of ADR 23.

    python tests/benchmarks/power_of_tests.py --tables 8000
    python tests/benchmarks/power_of_tests.py --stored

Tables of scores are drawn with the spreads of the published runs, or with other shapes, without a
true difference (family-wise error rate) and with one (power). Every procedure tests each contender
against the baseline and against uniform at 5% together. A score is the share of `EXAMPLES` test
examples that are right. With `--stored` nothing is drawn: the stored rows are tested on each scale.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

import results
from bench.api.loading import load_package
from bench.api.options import complete
from bench.api.selector import parse
from reports.catalog import Catalog
from reports.folder import read_folder
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.grouping import comparisons
from reports.tested import tested_comparisons

Values = NDArray[np.float64]
"""Tables, variants, seeds: the baseline first, then uniform, then contenders."""
Pairs = list[tuple[int, int]]
PUBLISHED = Path(__file__).parents[2] / "results" / "published"
EXAMPLES = 2500
"""Test examples of a score, as many as the scored symbols of common tasks of `quick`."""
SPREAD = 0.01
"""Median spread over seeds of a table around 0.5: that of `EXAMPLES` examples, and nearly that of
published comparisons, whose median is 0.017."""
WIDEST = 12.0
"""Largest spread in units of the median, so that scores stay between 0 and 1; a twentieth of the
published ones are wider."""
ERRORS, VARIATION = 0.02, 0.25
"""Near 1: the share of errors, and the median spread of a seed's share of errors, relative to it.
It is 0.13 in published variants from 0.9 to 0.98, and 0.75 to 0.87 in those above."""
DRAWS = 1000
"""Tables that the bootstrap draws; a p value of 1 / DRAWS must survive Holm's correction."""
BOOTSTRAPPED = 1000
"""Tables on which the bootstrap is tried, which takes long."""
RUN = 20
"""Tables of a run, for procedures that look at all of them together."""
UNITS = 1.0
"""Standard deviation of the logarithms of median spreads, in the range of the metric, of published
comparisons: from 0.0016 to 0.098."""
FAILED, RARE, OFTEN = 20.0, 0.1, 0.2
"""A seed that does not learn is so many deviations lower, with one of these probabilities."""


@cache
def published_spreads(least: int = 5) -> list[Values]:
    """Standard deviations over seeds of each published comparison, in units of their median."""
    found = []
    for name in ("quick", "families"):
        run = results.load(PUBLISHED / f"{name}.parquet")
        for one in comparisons(run.rows, Catalog.of(run.catalog), {}):
            seeds = [[*by_seed.values()] for by_seed in one.scores.values() if len(by_seed) >= 3]
            spreads = np.array([np.std(values, ddof=1) for values in seeds])
            if len(spreads) >= least and (spreads > 1e-9).sum() >= least:
                found.append(spreads / np.median(spreads[spreads > 1e-9]))
    return found


@cache
def published_rests(least: int = 5) -> Values:
    """Scores about the mean of their variant in units of its spread, where five seeds or more ran.

    They are drawn out a little, because the mean of n scores lies between them.
    """
    found = []
    for name in ("modern", "claims"):
        run = results.load(PUBLISHED / f"{name}.parquet")
        for one in comparisons(run.rows, Catalog.of(run.catalog), {}):
            for by_seed in one.scores.values():
                rests = np.array([*by_seed.values()], dtype=float)
                rests = (rests - rests.mean()) * np.sqrt(len(rests) / max(1, len(rests) - 1))
                if len(rests) >= least and rests.std() > 1e-9:
                    found.append(rests / rests.std())
    return np.concatenate(found)


class Tables:
    """Draws tables of scores, each a share of `EXAMPLES` examples that are right."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def draw(self, kind: str, shape: tuple[int, int, int], apart: float = 0.0) -> Values:
        """Tables of a kind; contenders are better by so many median deviations."""
        if kind == "near one":
            return self.near_one(shape)
        if kind == "ceiling":
            return 1 - self.rng.poisson(0.5, shape) / EXAMPLES
        values = self._deviations(kind, shape)
        values[:, 2:] += apart
        return np.rint(np.clip(0.5 + SPREAD * values, 0, 1) * EXAMPLES) / EXAMPLES

    def near_one(self, shape: tuple[int, int, int], times: float = 1.0) -> Values:
        """Few errors, of which a reference makes some times as many as a contender.

        The share of errors of a seed has a beta distribution with the mean of its variant, so that
        variants of unequal spreads have equal mean scores; the errors are binomial.
        """
        tables, variants, _ = shape
        spread = np.minimum(VARIATION * self._spreads(tables, variants), 1.0)
        mean = np.full((1, variants, 1), ERRORS)
        mean[:, :2] *= times
        strength = np.maximum((1 - mean) / mean / np.maximum(spread, 0.01) ** 2 - 1, 1e-3)
        share = self.rng.beta(mean * strength, (1 - mean) * strength, shape)
        return 1 - self.rng.binomial(EXAMPLES, share) / EXAMPLES

    def _deviations(self, kind: str, shape: tuple[int, int, int]) -> Values:
        """Distances from the common mean, in median deviations."""
        tables, variants, seeds = shape
        noise = self.rng.normal(size=shape)
        common = self.rng.normal(size=(tables, 1, seeds))
        if kind in ("published", "resampled", "skewed"):
            return self._spreads(tables, variants) * self._shaped(kind, noise)
        if kind == "flaky":
            return noise - FAILED * (self.rng.random(shape) < RARE)
        if kind == "one fails":
            # its mean is that of all others, because its other runs are better by as much
            noise[:, 2] += FAILED * (OFTEN - (self.rng.random((tables, seeds)) < OFTEN))
            return noise
        if kind == "paired":
            return 3 * common + self.rng.uniform(0.5, 2, (tables, variants, 1)) * noise
        if kind == "opposite":
            return 2 * common * self.rng.choice([-1, 1], (tables, variants, 1)) + noise
        if kind == "wide":
            return np.exp(self.rng.uniform(-2.3, 2.3, (tables, variants, 1))) * noise
        if kind == "mixed":
            wide = np.arange(variants) < round(0.4 * variants)
            spread = self.rng.permuted(np.broadcast_to(wide, (tables, variants)), axis=1)
            return np.where(spread, 10.0, 1.0)[..., None] * noise
        return noise

    def _shaped(self, kind: str, noise: Values) -> Values:
        if kind == "skewed":
            return 1 - self.rng.exponential(size=noise.shape)
        return self.rng.choice(published_rests(), noise.shape) if kind == "resampled" else noise

    def _spreads(self, tables: int, variants: int) -> Values:
        published = published_spreads()
        picked = self.rng.integers(len(published), size=tables)
        found = np.stack([self.rng.choice(published[at], variants) for at in picked])
        return np.minimum(found, WIDEST)[..., None]


KINDS = (
    "equal",
    "published",
    "resampled",
    "skewed",
    "wide",
    "flaky",
    "paired",
    "opposite",
    "mixed",
    "near one",
    "ceiling",
    "one fails",
)


@dataclass(frozen=True)
class Stated:
    """How often the chosen test is wrong in tables of a kind, as decision 23 states it."""

    kinds: tuple[str, ...]
    seeds: tuple[int, ...]
    least: float
    """Share of tables, 0 to 1; 0 where only the most is stated."""
    most: float
    large: bool | None = None
    """Whether it is about tables of `LARGE` variants or more, or of fewer; None for all."""

    def covers(self, kind: str, variants: int, seeds: int) -> bool:
        """Whether tables of this kind and size are meant."""
        sizes = (True, False) if self.large is None else (self.large,)
        return kind in self.kinds and seeds in self.seeds and (variants >= LARGE) in sizes

    @property
    def text(self) -> str:
        """The rate in whole percent."""
        most = f"{self.most:.0%}"
        return f"{100 * self.least:.0f} to {most}" if self.least else f"at most {most}"

    @property
    def line(self) -> str:
        """A line of the table of the decision."""
        sizes = {None: "all", True: f"{LARGE} or more", False: f"fewer than {LARGE}"}[self.large]
        names = ", ".join(f"`{kind}`" for kind in self.kinds)
        return f"| {names} | {sizes} | {', '.join(map(str, self.seeds))} | {self.text} |"


LARGE = 36
STATED = (
    Stated(("mixed",), (3,), 0.06, 0.07),
    Stated(("opposite",), (3,), 0.05, 0.06, large=False),
    Stated(("skewed",), (3, 5, 8), 0.06, 0.08, large=False),
    Stated(("skewed",), (3, 5), 0.05, 0.07, large=True),
    Stated(("skewed",), (8,), 0.08, 0.10, large=True),
    Stated(("near one",), (8,), 0.05, 0.06, large=True),
    Stated(("flaky",), (3,), 0.0, 0.06, large=True),
    Stated(("one fails",), (3,), 0.29, 0.39, large=False),
    Stated(("one fails",), (3,), 0.09, 0.15, large=True),
    Stated(("one fails",), (5,), 0.28, 0.34),
    Stated(("one fails",), (8,), 0.17, 0.18),
    Stated(KINDS, (3, 5, 8), 0.0, 0.05),
)
"""The first that covers a table holds for it. Tests hold these rates; decision 23 quotes them."""


def stated(kind: str, variants: int, seeds: int) -> Stated:
    """What is stated of tables of this kind and size."""
    return next(one for one in STATED if one.covers(kind, variants, seeds))


def stated_table() -> list[str]:
    """The lines of the table of decision 23; its last one is for all that no other covers."""
    *special_ones, usual = STATED
    return [
        "| kind | variants | seeds | tables with a claim |",
        "| --- | --- | --- | --- |",
        *(one.line for one in special_ones),
        f"| all others | all | {', '.join(map(str, usual.seeds))} | {usual.text} |",
    ]


Test = Callable[[Values, Pairs], Values]
"""P values: tables, hypotheses."""


def two_sided(t: Values, freedom: Values | float) -> Values:
    return np.asarray(2 * special.stdtr(freedom, -np.abs(t)))


def ratio(gap: Values, error: Values) -> Values:
    return np.where(error > 1e-12, gap / np.where(error > 1e-12, error, 1.0), 0.0)


def paired_t(values: Values, pairs: Pairs) -> Values:
    gaps = np.stack([values[:, one] - values[:, other] for one, other in pairs], axis=1)
    seeds = values.shape[2]
    error = gaps.std(axis=2, ddof=1) / np.sqrt(seeds)
    p = two_sided(ratio(gaps.mean(axis=2), error), seeds - 1)
    moved = np.abs(gaps.mean(axis=2)) > 1e-12
    return np.where(error > 1e-12, p, np.where(moved, 2.0 ** (1 - seeds), 1.0))


def block_design(values: Values, pairs: Pairs) -> Values:
    """Variants by seeds, one pooled residual variance, (k-1)(n-1) degrees of freedom."""
    t, freedom = block_ratios(values, pairs)
    return two_sided(t, freedom)


def dunnett(values: Values, pairs: Pairs) -> Values:
    """The block design with Dunnett's p values: two controls, each with half of the 5%.

    Differences to one control share it, so their t values are correlated by one half. The largest
    of them is drawn 100,000 times. The hypothesis baseline against uniform goes with those against
    uniform. Whatever the dependence of both families, they are wrong in 5% together at most.
    """
    t, freedom = block_ratios(values, pairs)
    of_control = [[at for at, pair in enumerate(pairs) if pair[1] == other] for other in (0, 1)]
    p = np.empty_like(t)
    for places in of_control:
        largest = largest_ratios(tuple(pairs[at] for at in places), values.shape[1], freedom)
        below = np.searchsorted(largest, np.abs(t[:, places]))
        p[:, places] = np.minimum(1, 2 * (1 - below / len(largest)))
    return p


def both_controls(values: Values, pairs: Pairs) -> Values:
    """The block design with the distribution of the largest t value of all hypotheses at once."""
    t, freedom = block_ratios(values, pairs)
    largest = largest_ratios(tuple(pairs), values.shape[1], freedom)
    return np.asarray(1 - np.searchsorted(largest, np.abs(t)) / len(largest))


@cache
def largest_ratios(pairs: tuple[tuple[int, int], ...], variants: int, freedom: int) -> Values:
    """100,000 largest t values of these differences of equal variants, in order."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(100_000, variants))
    error = np.sqrt(2 * rng.chisquare(freedom, size=100_000) / freedom)
    gaps = np.stack([means[:, one] - means[:, other] for one, other in pairs])
    return np.asarray(np.sort(np.abs(gaps).max(axis=0) / error))


def block_ratios(values: Values, pairs: Pairs) -> tuple[Values, int]:
    """Differences of means over their standard error, and its degrees of freedom."""
    _, variants, seeds = values.shape
    rest = values - values.mean(axis=2, keepdims=True)
    rest = rest - rest.mean(axis=1, keepdims=True)
    freedom = (variants - 1) * (seeds - 1)
    error = np.sqrt(2 * (rest**2).sum(axis=(1, 2)) / freedom / seeds)
    means = values.mean(axis=2)
    gaps = np.stack([means[:, one] - means[:, other] for one, other in pairs], axis=1)
    return ratio(gaps, error[:, None]), freedom


def moderated_differences(values: Values, pairs: Pairs) -> Values:
    """Variances of differences, shrunk to their median with two degrees of freedom."""
    gaps = np.stack([values[:, one] - values[:, other] for one, other in pairs], axis=1)
    freedom = values.shape[2] - 1
    own = gaps.var(axis=2, ddof=1)
    shrunk = (2 * np.median(own, axis=1, keepdims=True) + freedom * own) / (2 + freedom)
    error = np.sqrt(shrunk / values.shape[2])
    return two_sided(ratio(gaps.mean(axis=2), error), 2 + freedom)


def limma(values: Values, pairs: Pairs) -> Values:
    """Variances of differences, shrunk by empirical Bayes (Smyth, 2004, section 6.2).

    The prior's variance and its degrees of freedom are estimated from the logarithms of the
    variances of a table; where these spread no more than chance makes them, nothing but the prior
    counts.
    """
    gaps = np.stack([values[:, one] - values[:, other] for one, other in pairs], axis=1)
    freedom = values.shape[2] - 1
    own = np.maximum(gaps.var(axis=2, ddof=1), 1e-30)
    half, prior = estimated_prior(own, freedom)
    return moderated_by(gaps, own, half, prior)


def limma_of_a_run(values: Values, pairs: Pairs) -> Values:
    """As `limma`, with a prior from the variances of all comparisons of a run of `RUN` tables.

    Scores of a run have many units. So a variance is relative to the pooled one of its table.
    """
    gaps = np.stack([values[:, one] - values[:, other] for one, other in pairs], axis=1)
    own = gaps.var(axis=2, ddof=1)
    return moderated_over_runs(gaps, own, own.mean(axis=1, keepdims=True))


def limma_of_ranges(values: Values, pairs: Pairs) -> Values:
    """As `limma_of_a_run`, with variances in the range of the metric.

    Tables are drawn around one median spread. Those of a run get one of their own each, which
    differ as published ones do.
    """
    gaps = np.stack([values[:, one] - values[:, other] for one, other in pairs], axis=1)
    units = np.random.default_rng(0).lognormal(0, UNITS, (len(gaps), 1))
    return moderated_over_runs(gaps, gaps.var(axis=2, ddof=1), units**2)


def moderated_over_runs(gaps: Values, own: Values, units: Values) -> Values:
    """P values by the prior of each run; a variance counts in `units`, one a table."""
    freedom = gaps.shape[2] - 1
    moving = own.max(axis=1, keepdims=True) > 1e-30
    relative = own / np.where(moving, units, 1.0)
    halves, priors = np.empty((2, len(own), 1))
    for at in range(0, len(own), RUN):
        run = slice(at, at + RUN)
        # a table without any spread says nothing about those with some
        seen = relative[run][moving[run, 0]].ravel()
        # zeros have no logarithm: limma raises them to this share of the median, too
        raised = np.maximum(seen, 1e-5 * np.median(seen))
        halves[run], priors[run] = estimated_prior(raised[None], freedom)
    return moderated_by(gaps, own, halves, priors * units)


def estimated_prior(own: Values, freedom: int) -> tuple[Values, Values]:
    """Half of the degrees of freedom of the prior of each line of variances, and its variance."""
    logs = np.log(own) - special.digamma(freedom / 2) + np.log(freedom / 2)
    middle = logs.mean(axis=1, keepdims=True)
    spread = logs.var(axis=1, ddof=1, keepdims=True) - special.polygamma(1, freedom / 2)
    half = inverse_trigamma(np.maximum(spread, 1e-6))
    return half, np.exp(middle + special.digamma(half) - np.log(half))


def moderated_by(gaps: Values, own: Values, half: Values, prior: Values) -> Values:
    """P values of differences of which the variance is a weighted mean of its own and a prior."""
    freedom = gaps.shape[2] - 1
    shrunk = (2 * half * prior + freedom * own) / (2 * half + freedom)
    error = np.sqrt(shrunk / gaps.shape[2])
    # no more degrees of freedom than all variances of the table have together
    together = np.minimum(2 * half + freedom, freedom * gaps.shape[1])
    return two_sided(ratio(gaps.mean(axis=2), error), together)


def inverse_trigamma(values: Values) -> Values:
    """Where the trigamma function has these values, by Newton's method on its reciprocal."""
    found = 0.5 + 1 / values
    for _ in range(20):
        at = special.polygamma(1, found)
        found = found + at * (1 - at / values) / special.polygamma(2, found)
    return np.asarray(found)


def bootstrap(values: Values, pairs: Pairs) -> Values:
    """Percentiles over seeds drawn again, and the test examples of each drawn seed drawn again.

    A score is k of n right, so n examples drawn again are a binomial draw of k / n. Of a seed that
    is drawn w times, w n examples are drawn. Variants have the seeds of a draw in common, and not
    its examples, because stored rows do not say which examples were right.
    """
    rng, seeds = np.random.default_rng(0), values.shape[2]
    times = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=DRAWS)
    tables = values[:BOOTSTRAPPED]
    right = np.zeros((*tables.shape[:2], DRAWS), dtype=np.int64)
    for seed in range(seeds):
        right += rng.binomial(EXAMPLES * times[:, seed], tables[:, :, seed, None])
    found = []
    for one, other in pairs:
        gaps = right[:, one] - right[:, other]
        below = (gaps < 0).mean(axis=1) + 0.5 * (gaps == 0).mean(axis=1)
        found.append(np.maximum(2 * np.minimum(below, 1 - below), 1 / DRAWS))
    return np.stack(found, axis=1)


def moderated_variants(values: Values, pairs: Pairs) -> Values:
    """What is used: `results.statistics.moderated`, on whole tables at once."""
    _, variants, seeds = values.shape
    if variants == 2:
        return paired_t(values, pairs)
    rest = values - values.mean(axis=2, keepdims=True)
    own, prior = (rest**2).sum(axis=2) / (seeds - 1), 1 - 2 / variants
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle = np.nanmedian(np.where(own > 1e-12, own, np.nan), axis=1)
    common = np.minimum(own.mean(axis=1), 5 * np.nan_to_num(middle))[:, None]
    shrunk = (prior * common + (seeds - 1) * own) / (prior + seeds - 1)
    length = np.sqrt((rest**2).sum(axis=2, keepdims=True))
    moves = np.where(length > 1e-9, rest / np.where(length > 1e-9, length, 1), 0)
    count = (length[..., 0] > 1e-9).sum(axis=1)
    cosine = ((moves.sum(axis=1) ** 2).sum(axis=1) - count) / np.maximum(count * (count - 1), 1)
    bound = np.arctanh(np.clip(cosine, 0, 1 - 1e-12)) - 2 / np.sqrt((seeds - 1) * variants)
    correlation, found = np.clip(np.tanh(bound), 0, 1), []
    for one, other in pairs:
        a, b = shrunk[:, one], shrunk[:, other]
        gaps = values[:, one] - values[:, other]
        shared = a + b - 2 * correlation * np.sqrt(a * b)
        error = np.sqrt(np.maximum(shared, gaps.var(axis=1, ddof=1)) / seeds)
        freedom = (a + b) ** 2 / np.maximum((a**2 + b**2) / (prior + seeds - 1), 1e-30)
        p = two_sided(ratio(gaps.mean(axis=1), error), np.maximum(freedom, 1))
        moved = np.abs(gaps.mean(axis=1)) > 1e-12
        found.append(np.where(error > 1e-9, p, np.where(moved, 2.0 ** (1 - seeds), 1.0)))
    return np.stack(found, axis=1)


def logits(values: Values, examples: int = EXAMPLES) -> Values:
    """Empirical logits: half an example is added to those right and to those wrong."""
    return np.log((values * examples + 0.5) / ((1 - values) * examples + 0.5))


def arcsines(values: Values, examples: int = EXAMPLES) -> Values:
    """The scale on which binomial counts have one variance (Anscombe, 1948, section 3)."""
    return np.arcsin(np.sqrt((values * examples + 3 / 8) / (examples + 3 / 4)))


def log_errors(values: Values, examples: int = EXAMPLES) -> Values:
    """Logarithms of the numbers of errors, with half an error more."""
    return np.log((1 - values) * examples + 0.5)


def on_logits(values: Values, pairs: Pairs) -> Values:
    return moderated_variants(logits(values), pairs)


def on_arcsines(values: Values, pairs: Pairs) -> Values:
    return moderated_variants(arcsines(values), pairs)


def on_log_errors(values: Values, pairs: Pairs) -> Values:
    return moderated_variants(log_errors(values), pairs)


def quasi_binomial(values: Values, pairs: Pairs) -> Values:
    """Error counts with a binomial variance times one dispersion of the table, at least 1.

    The dispersion is Pearson's, and the variance of a difference that of two equal variants.
    """
    _, variants, seeds = values.shape
    share = values.mean(axis=2, keepdims=True)
    noise = share * (1 - share) / EXAMPLES
    squares = np.where(noise > 0, (values - share) ** 2 / np.where(noise > 0, noise, 1), 0)
    freedom = variants * (seeds - 1)
    dispersion = np.maximum(squares.sum(axis=(1, 2)) / freedom, 1)
    found = []
    for one, other in pairs:
        both = (share[:, one, 0] + share[:, other, 0]) / 2
        error = np.sqrt(2 * dispersion * both * (1 - both) / EXAMPLES / seeds)
        gap = share[:, one, 0] - share[:, other, 0]
        found.append(two_sided(ratio(gap, error), freedom))
    return np.stack(found, axis=1)


PROCEDURES: dict[str, Test] = {
    "paired t": paired_t,
    "block design": block_design,
    "block, Dunnett": dunnett,
    "block, both controls": both_controls,
    "moderated differences": moderated_differences,
    "limma": limma,
    "limma, run": limma_of_a_run,
    "limma, run by range": limma_of_ranges,
    "bootstrap": bootstrap,
    "quasi-binomial": quasi_binomial,
    "logit": on_logits,
    "log errors": on_log_errors,
    "arcsine": on_arcsines,
    "moderated variants": moderated_variants,
}


ONE_STEP = (dunnett, both_controls)
"""Procedures whose p values are corrected already."""
SCALES: dict[str, Callable[[Values, int], Values]] = {
    "scores": lambda values, _: values,
    "arcsine": arcsines,
    "logit": logits,
    "log errors": log_errors,
}


def holm(p_values: Values) -> Values:
    order = np.argsort(p_values, axis=1)
    steps = np.arange(p_values.shape[1], 0, -1)
    scaled = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=1) * steps, axis=1)
    adjusted = np.empty_like(scaled)
    np.put_along_axis(adjusted, order, np.minimum(scaled, 1), axis=1)
    return adjusted


def primary(variants: int) -> Pairs:
    return [(one, other) for other in (0, 1) for one in range(2, variants)] + [(0, 1)]


def powers(tables: Tables, shape: tuple[int, int, int]) -> dict[str, Values]:
    """Tables with true differences."""
    found = {f"power {size}": tables.draw("resampled", shape, size) for size in (3, 6, 12)}
    return found | {
        "half": tables.near_one(shape, 2),
        "quarter": tables.near_one(shape, 4),
    }


def simulate(count: int, seed: int, sizes: list[int], procedures: list[str]) -> None:
    """Print error rates and power as Markdown."""
    tables = Tables(seed)
    heads = [*KINDS, "power 3", "power 6", "power 12", "half", "quarter"]
    print(f"| variants, seeds | procedure | {' | '.join(heads)} |")
    print(f"| --- | --- |{' ---: |' * len(heads)}")
    for variants, seeds in product(sizes, (3, 5, 8)):
        shape, pairs = (count, variants, seeds), primary(variants)
        equal = [tables.draw(kind, shape) for kind in KINDS]
        apart = powers(tables, shape).values()
        for name in procedures:
            test = PROCEDURES[name]
            corrected = (lambda p: p) if test in ONE_STEP else holm
            found = [corrected(test(one, pairs)) < 0.05 for one in equal]
            errors = [one.any(axis=1).mean() for one in found]
            power = [
                (corrected(test(one, pairs))[:, : variants - 2] < 0.05).mean() for one in apart
            ]
            cells = " | ".join(f"{share:.3f}" for share in (*errors, *power))
            print(f"| {variants}, {seeds} | {name} | {cells} |", flush=True)


def examples_of(task: str) -> int:
    """Test examples that the options of a task ask for; 500 where they name no number."""
    options = complete("task", parse(task)).options
    asked = [options[name] for name in ("evaluate", "test") if options.get(name)]
    return int(str(asked[0])) if asked else 500


def rescaled(one: Comparison, scale: str) -> Comparison | None:
    """The same scores on another scale; None where they have no highest or no lowest value."""
    low, high = one.ranked_by.limits
    if not np.isfinite(high - low):
        return None
    examples, change = examples_of(one.task), SCALES[scale]
    given = {
        variant: {
            seed: float(change(np.array((value - low) / (high - low)), examples))
            for seed, value in by_seed.items()
        }
        for variant, by_seed in one.scores.items()
    }
    # falling logarithms of errors only turn better into worse
    return replace(one, given=given, measured=replace(one.ranked_by, limits=(-np.inf, np.inf)))


def stored() -> None:
    """Print how many primary hypotheses of stored rows have a significant difference, by scale."""
    load_package("tasks")
    print(f"| run | hypotheses | of bounded scores | {' | '.join(SCALES)} |")
    print(f"| --- |{' ---: |' * (len(SCALES) + 2)}")
    for name in ("quick", "families", "modern", "flagship"):
        every = tested_comparisons(read_folder(PUBLISHED / f"{name}.parquet"))
        found: Counter[str] = Counter()
        for one in every:
            found["hypotheses"] += len(one.primary)
            for scale in SCALES:
                other = rescaled(one, scale)
                if other is None:
                    continue
                found["bounded"] += len(one.primary) if scale == "scores" else 0
                outcomes = [decision.outcome for decision in other.primary.values()]
                found[scale] += sum(outcome in ("better", "worse") for outcome in outcomes)
        cells = [found["hypotheses"], found["bounded"], *(found[scale] for scale in SCALES)]
        print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    """Print what is asked."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tables", type=int, default=2000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--variants", type=int, nargs="+", default=(4, 9))
    asked.add_argument("--procedures", nargs="+", default=[*PROCEDURES], choices=PROCEDURES)
    asked.add_argument("--stored", action="store_true")
    options = asked.parse_args()
    if options.stored:
        stored()
    else:
        simulate(options.tables, options.seed, options.variants, options.procedures)


if __name__ == "__main__":
    main()
