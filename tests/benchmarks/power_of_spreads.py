"""Error rates and power of tests of equal spread over seeds: the table of ADR 20.

    python tests/benchmarks/power_of_spreads.py --pairs 20000

Pairs of variants are drawn from one distribution (error rate), and with spreads that differ by a
factor of 2 and 3 (power). Every procedure tests at 5%, both sides.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

Values = NDArray[np.float64]
"""Pairs, two variants, seeds."""
KINDS = ("equal", "skewed", "heavy", "flaky", "ceiling", "paired")
SEEDS = (6, 8, 12, 24)


def draw(rng: np.random.Generator, kind: str, shape: tuple[int, int, int]) -> Values:
    """Scores of equal variants."""
    noise = rng.normal(size=shape)
    if kind == "skewed":
        return 1 - rng.exponential(size=shape)
    if kind == "heavy":
        return rng.standard_t(3, size=shape)
    if kind == "flaky":  # one run in ten does not learn
        return noise - 20.0 * (rng.random(shape) < 0.1)
    if kind == "ceiling":  # half an error a run
        return -rng.poisson(0.5, shape).astype(float)
    if kind == "paired":  # a seed is hard for both
        return 0.8 * rng.normal(size=(shape[0], 1, shape[2])) + 0.6 * noise
    return noise


def two_sided(t: Values, freedom: float) -> Values:
    return np.asarray(2 * special.stdtr(freedom, -np.abs(t)))


def distances(values: Values) -> Values:
    return np.abs(values - np.median(values, axis=2, keepdims=True))


def over(gap: Values, error: Values) -> Values:
    """0 where nothing moves."""
    return np.where(error > 1e-12, gap / np.where(error > 1e-12, error, 1.0), 0.0)


def variance_ratio(values: Values) -> Values:
    """The F test."""
    seeds = values.shape[2]
    first, second = values.var(axis=2, ddof=1).T
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.fdtrc(seeds - 1, seeds - 1, larger / smaller)
    return np.where(larger > 1e-12, np.minimum(1.0, p), 1.0)


def pitman_morgan(values: Values) -> Values:
    """The correlation of sum and difference: for pairs of normal scores."""
    rest = values - values.mean(axis=2, keepdims=True)
    total, gap = rest[:, 0] + rest[:, 1], rest[:, 0] - rest[:, 1]
    r = over((total * gap).sum(1), np.sqrt((total**2).sum(1) * (gap**2).sum(1)))
    r = np.clip(r, -1 + 1e-12, 1 - 1e-12)
    freedom = values.shape[2] - 2
    return two_sided(r * np.sqrt(freedom / (1 - r**2)), freedom)


def brown_forsythe(values: Values) -> Values:
    """Of two groups of seeds that are not paired."""
    away, seeds = distances(values), values.shape[2]
    error = np.sqrt(away.var(axis=2, ddof=1).sum(axis=1) / seeds)
    means = away.mean(axis=2)
    return two_sided(over(means[:, 0] - means[:, 1], error), 2 * seeds - 2)


def paired_distances(values: Values) -> Values:
    """What is used: the paired t test of distances from the median."""
    away, seeds = distances(values), values.shape[2]
    gaps = away[:, 0] - away[:, 1]
    error = gaps.std(axis=1, ddof=1) / np.sqrt(seeds)
    return two_sided(over(gaps.mean(axis=1), error), seeds - 1)


PROCEDURES: dict[str, Callable[[Values], Values]] = {
    "F test": variance_ratio,
    "Pitman-Morgan": pitman_morgan,
    "Brown-Forsythe": brown_forsythe,
    "paired distances": paired_distances,
}


def main() -> None:
    """Print the table as Markdown."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pairs", type=int, default=20000)
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    rng = np.random.default_rng(options.seed)
    heads = [*KINDS, "power 2", "power 3"]
    print(f"| seeds | procedure | {' | '.join(heads)} |")
    print(f"| ---: | --- |{' ---: |' * len(heads)}")
    for seeds in SEEDS:
        shape = (options.pairs, 2, seeds)
        drawn = [draw(rng, kind, shape) for kind in KINDS]
        drawn += [draw(rng, "equal", shape) * np.array([[by], [1.0]]) for by in (2.0, 3.0)]
        for name, test in PROCEDURES.items():
            cells = " | ".join(f"{(test(values) < 0.05).mean():.3f}" for values in drawn)
            print(f"| {seeds} | {name} | {cells} |")


if __name__ == "__main__":
    main()
