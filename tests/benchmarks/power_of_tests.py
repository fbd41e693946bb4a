"""Error rates and power of procedures that could decide primary hypotheses: the tables of ADR 23.

    python tests/benchmarks/power_of_tests.py --tables 4000

Tables of scores are drawn with the spreads of the published runs, or with other shapes, without a
true difference (family-wise error rate) and with one (power). Every procedure tests each contender
against the baseline and against uniform at 5% together.
"""

import argparse
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

import results
from reports.catalog import Catalog
from reports.ranked_table.grouping import comparisons

Values = NDArray[np.float64]
"""Tables, variants, seeds: the baseline first, then uniform, then contenders."""
Pairs = list[tuple[int, int]]
PUBLISHED = Path(__file__).parents[2] / "results" / "published"
DRAWS = 1000
"""Tables that the bootstrap draws; a p value of 1 / DRAWS must survive Holm's correction."""
FAILED, RARE = 20.0, 0.1
"""A seed that does not learn is so many deviations lower, with this probability."""


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
    """Draws tables of scores."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.published = published_spreads()
        self.rests = published_rests()

    def draw(self, kind: str, shape: tuple[int, int, int]) -> Values:
        tables, variants, seeds = shape
        noise = self.rng.normal(size=shape)
        common = self.rng.normal(size=(tables, 1, seeds))
        if kind in ("published", "resampled", "skewed"):
            return self._spreads(tables, variants) * self._shaped(kind, noise)
        if kind == "flaky":
            return noise - FAILED * (self.rng.random(shape) < RARE)
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
        if kind == "ceiling":
            return -self.rng.poisson(0.5, shape).astype(float)
        return noise

    def _shaped(self, kind: str, noise: Values) -> Values:
        if kind == "skewed":
            return 1 - self.rng.exponential(size=noise.shape)
        return self.rng.choice(self.rests, noise.shape) if kind == "resampled" else noise

    def _spreads(self, tables: int, variants: int) -> Values:
        picked = self.rng.integers(len(self.published), size=tables)
        return np.stack([self.rng.choice(self.published[at], variants) for at in picked])[..., None]


KINDS = (
    "equal",
    "published",
    "resampled",
    "skewed",
    "wide",
    "flaky",
    "paired",
    "opposite",
    "ceiling",
    "mixed",
)
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
    of them is drawn 100,000 times. The hypothesis baseline against uniform goes with the baseline.
    """
    t, freedom = block_ratios(values, pairs)
    rng = np.random.default_rng(0)
    of_control = {
        other: [at for at, pair in enumerate(pairs) if pair[1] == other] for other in (0, 1)
    }
    p = np.empty_like(t)
    for places in of_control.values():
        each = rng.normal(size=(100_000, len(places))) + rng.normal(size=(100_000, 1))
        spread = np.sqrt(2 * rng.chisquare(freedom, size=(100_000, 1)) / freedom)
        largest = np.sort(np.abs(each / spread).max(axis=1))
        below = np.searchsorted(largest, np.abs(t[:, places]))
        p[:, places] = np.minimum(1, 2 * (1 - below / len(largest)))
    return p


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
    logs = np.log(own) - special.digamma(freedom / 2) + np.log(freedom / 2)
    middle = logs.mean(axis=1, keepdims=True)
    spread = logs.var(axis=1, ddof=1, keepdims=True) - special.polygamma(1, freedom / 2)
    half = inverse_trigamma(np.maximum(spread, 1e-6))
    prior = np.exp(middle + special.digamma(half) - np.log(half))
    shrunk = (2 * half * prior + freedom * own) / (2 * half + freedom)
    error = np.sqrt(shrunk / values.shape[2])
    # no more degrees of freedom than all variances of the table have together
    together = np.minimum(2 * half + freedom, freedom * len(pairs))
    return two_sided(ratio(gaps.mean(axis=2), error), together)


def inverse_trigamma(values: Values) -> Values:
    """Where the trigamma function has these values, by Newton's method on its reciprocal."""
    found = 0.5 + 1 / values
    for _ in range(20):
        at = special.polygamma(1, found)
        found = found + at * (1 - at / values) / special.polygamma(2, found)
    return np.asarray(found)


def bootstrap(values: Values, pairs: Pairs) -> Values:
    """Percentiles over seeds drawn again, with the noise of 500 test examples added."""
    rng, (tables, _, seeds) = np.random.default_rng(0), values.shape
    draws = rng.integers(seeds, size=(DRAWS, seeds))
    # a seed deviation is that of about 500 examples at the sizes of the bench
    means = values[:, :, draws].mean(axis=3) + 0.2 * rng.normal(size=(*values.shape[:2], DRAWS))
    found = []
    for one, other in pairs:
        below = ((means[:, one] - means[:, other]) <= 0).mean(axis=1)
        found.append(np.maximum(2 * np.minimum(below, 1 - below), 1 / DRAWS))
    return np.stack(found, axis=1).reshape(tables, -1)


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


PROCEDURES: dict[str, Test] = {
    "paired t": paired_t,
    "block design": block_design,
    "block, Dunnett": dunnett,
    "moderated differences": moderated_differences,
    "limma": limma,
    "bootstrap": bootstrap,
    "moderated variants": moderated_variants,
}


ONE_STEP = (dunnett,)
"""Procedures whose p values are corrected already."""


def holm(p_values: Values) -> Values:
    order = np.argsort(p_values, axis=1)
    steps = np.arange(p_values.shape[1], 0, -1)
    scaled = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=1) * steps, axis=1)
    adjusted = np.empty_like(scaled)
    np.put_along_axis(adjusted, order, np.minimum(scaled, 1), axis=1)
    return adjusted


def primary(variants: int) -> Pairs:
    return [(one, other) for other in (0, 1) for one in range(2, variants)] + [(0, 1)]


def main() -> None:
    """Print both tables as Markdown."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tables", type=int, default=2000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--variants", type=int, nargs="+", default=(4, 9))
    asked.add_argument("--procedures", nargs="+", default=PROCEDURES, choices=PROCEDURES)
    options = asked.parse_args()
    tables = Tables(options.seed)
    heads = [*KINDS, "power 3", "power 6", "power 12"]
    print(f"| variants, seeds | procedure | {' | '.join(heads)} |")
    print(f"| --- | --- |{' ---: |' * len(heads)}")
    for variants, seeds in product(options.variants, (3, 5, 8)):
        shape, pairs = (options.tables, variants, seeds), primary(variants)
        equal = {kind: tables.draw(kind, shape) for kind in KINDS}
        apart = []
        for size in (3, 6, 12):
            values = tables.draw("resampled", shape)
            values[:, 2:] += size
            apart.append(values)
        for name, test in PROCEDURES.items():
            if name not in options.procedures:
                continue
            corrected = (lambda p: p) if test in ONE_STEP else holm
            found = [corrected(test(equal[kind], pairs)) < 0.05 for kind in KINDS]
            errors = [one.any(axis=1).mean() for one in found]
            power = [
                (corrected(test(one, pairs))[:, : variants - 2] < 0.05).mean() for one in apart
            ]
            cells = " | ".join(f"{share:.3f}" for share in (*errors, *power))
            print(f"| {variants}, {seeds} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
