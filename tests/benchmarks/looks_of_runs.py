"""Error rates and cost of runs that add seeds where something is undecided: the tables of ADR 24.

    python tests/benchmarks/looks_of_runs.py --tables 600 --repeats 3

First, tables without a true difference: the share in which one is claimed. Second, the published
comparisons, drawn again from their means and spreads: how many primary hypotheses are decided with
the same seeds for all variants, and with seeds that are added look by look.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from power_of_tests import KINDS, PUBLISHED, Tables, Values

import results
from reports.catalog import Catalog
from reports.ranked_table.grouping import comparisons
from results.looks import Looks
from results.statistics import SequentialTable, decide

FIRST, MOST = 3, 21
LOOKS = Looks(first=FIRST)


@dataclass(frozen=True)
class Ended:
    """What a simulated run came to."""

    cells: int
    hypotheses: int
    decided: int
    claimed: bool
    """Whether any difference is called significant."""


def added(values: Values, margin: float | None, most: int) -> Ended:
    """A run that adds seeds to what is undecided; line 0 is the baseline, line 1 is uniform."""
    names = [f"v{at}" for at in range(len(values))]
    seeds = dict.fromkeys(names, FIRST)
    for number in range(1, LOOKS.most(most) + 1):
        scores = {
            name: dict(enumerate(line[: seeds[name]].tolist()))
            for name, line in zip(names, values, strict=True)
        }
        found = decide(
            scores,
            "higher",
            baseline="v0",
            uniform="v1",
            margin=margin,
            table=SequentialTable(scores, scores, LOOKS),
        )
        open_ = {name for pair, one in found.items() if not one.decided for name in pair}
        if number < LOOKS.most(most):
            seeds |= dict.fromkeys(open_, len(LOOKS.seeds(number + 1)))
    return _ended(found, sum(seeds.values()))


def fixed(values: Values, margin: float | None, count: int) -> Ended:
    """A run with the same seeds for all."""
    scores = {f"v{at}": dict(enumerate(line[:count].tolist())) for at, line in enumerate(values)}
    found = decide(scores, "higher", baseline="v0", uniform="v1", margin=margin)
    return _ended(found, len(values) * count)


def _ended(found: dict, cells: int) -> Ended:
    outcomes = [one.outcome for one in found.values()]
    decided = sum(one != "undecided" for one in outcomes)
    claimed = "better" in outcomes or "worse" in outcomes
    return Ended(cells, len(outcomes), decided, claimed)


def published() -> Iterator[tuple[np.ndarray, np.ndarray, float | None]]:
    """Means and spreads of each published comparison, references first, and a margin of 5%."""
    for name in ("quick", "families"):
        run = results.load(PUBLISHED / f"{name}.parquet")
        for one in comparisons(run.rows, Catalog.of(run.catalog), {}):
            base, uniform = one.baseline, one.uniform_baseline
            if base is None or uniform is None or one.better == "none":
                continue
            order = [base, uniform, *(v for v in one.contenders if v not in (base, uniform))]
            known = [[*one.scores[v].values()] for v in order if len(one.scores[v]) == FIRST]
            low, high = one.ranked_by.limits
            margin = 0.05 * (high - low) if np.isfinite(high - low) else None
            sign = -1 if one.better == "lower" else 1
            if len(known) > 2:
                means, spreads = [sign * fmean(v) for v in known], [stdev(v) for v in known]
                yield np.array(means)[:, None], np.array(spreads)[:, None], margin


def errors(tables: int, sizes: list[int]) -> None:
    """Print the shares of tables without a difference that hold a claim of one."""
    print(f"| variants | {' | '.join(KINDS)} |\n| --- |{' ---: |' * len(KINDS)}")
    for variants in sizes:
        draws, shares = Tables(0), []
        for kind in KINDS:
            drawn = draws.draw(kind, (tables, variants, MOST))
            shares.append(fmean(added(values, None, MOST).claimed for values in drawn))
        print(f"| {variants} | {' | '.join(f'{one:.3f}' for one in shares)} |", flush=True)


def cost(repeats: int) -> None:
    """Print what is decided for how many cells."""
    rng, every = np.random.default_rng(0), [*published()]
    print("| seeds | cells | decided | share |\n| --- | ---: | ---: | ---: |")
    drawn = [
        (means + spreads * rng.normal(size=(len(means), MOST)), margin)
        for _ in range(repeats)
        for means, spreads, margin in every
    ]
    rows = {
        f"{count} for all": [fixed(*one, count) for one in drawn] for count in (3, 5, 8, 13, 21)
    }
    rows |= {
        f"{FIRST}, added to {most}": [added(*one, most) for one in drawn] for most in (5, 8, 13, 21)
    }
    for name, found in rows.items():
        decided, tested = sum(one.decided for one in found), sum(one.hypotheses for one in found)
        cells = sum(one.cells for one in found) / repeats
        print(
            f"| {name} | {cells:.0f} | {decided / repeats:.0f} | {decided / tested:.3f} |",
            flush=True,
        )


def main() -> None:
    """Print both tables as Markdown."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tables", type=int, default=400)
    asked.add_argument("--repeats", type=int, default=5)
    asked.add_argument("--variants", type=int, nargs="*", default=[4, 9])
    options = asked.parse_args()
    if options.repeats:
        cost(options.repeats)
    errors(options.tables, options.variants)


if __name__ == "__main__":
    main()
