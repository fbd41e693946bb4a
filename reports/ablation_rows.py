"""The ablation table: one axis changed at a time."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from reports.ranked_table.cells import NOTHING
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.rows import bounds, range_of, seen
from results.statistics import Interval, PairedDifference, holm, paired_difference


class Tested(NamedTuple):
    """A difference to the base, and its adjusted p."""

    difference: PairedDifference
    p_adjusted: float


def ablation_table(found: Iterable[Comparison]) -> pd.DataFrame:
    """One changed axis per line, and what the change did to the score on common seeds.

    Returns:
        Columns `task`, `base`, `unit`, `axis`, `value`, `variant`, `score` and `difference` with
        bounds and the extremes of their seeds (`score_min` and so on), `p_adjusted`, `planned`
        (difference and p are those of the primary test against the baseline; otherwise the test is
        a paired t test with Holm's correction over the lines of one task and base; a preset that
        ranks nothing has no p),
        `without_spread` (seeds say nothing about the error of the difference), `red`.
    """
    lines = []
    for comparison in found:
        changes = [(name, comparison.catalog.ablation(name)) for name in comparison.variants]
        for base in sorted({change["base"] for _, change in changes if change}):
            mine = {name: change for name, change in changes if change and change["base"] == base}
            lines += _ablation_lines(comparison, base, mine)
    return pd.DataFrame(lines)


def _ablation_lines(
    comparison: Comparison, base: str, changes: Mapping[str, Mapping[str, str]]
) -> list[dict[str, object]]:
    """The base, then what was changed in it, axis by axis."""
    planned = base == comparison.baseline
    tests = (_planned if planned else _paired)(comparison, base, changes)
    unchanged = {"axis": "(base)", "value": ""}
    lines = [_line(comparison, base, base, unchanged, math.nan, NOTHING)]
    for name, change in sorted(changes.items(), key=lambda item: [*item[1].values()]):
        difference, p_adjusted = tests[name]
        if not comparison.catalog.ranks:  # cells are too small for a test to say anything
            p_adjusted = math.nan
        lines.append(_line(comparison, base, name, change, p_adjusted, difference))
    return [{**line, "planned": planned} for line in lines]


def _planned(comparison: Comparison, base: str, names: Iterable[str]) -> dict[str, Tested]:
    """The primary tests against the baseline; what is not ranked has a difference and no p."""
    found = {}
    for name in names:
        line = comparison.compared.get(name)
        decision = None if line is None else line.against_baseline
        if decision is None:
            found[name] = Tested(_difference(comparison, name, base), math.nan)
        else:
            found[name] = Tested(decision.difference, decision.p_adjusted)
    return found


def _paired(comparison: Comparison, base: str, names: Iterable[str]) -> dict[str, Tested]:
    """Paired t tests, with Holm's correction over the lines."""
    differences = {name: _difference(comparison, name, base) for name in names}
    adjusted = holm([one.p for one in differences.values()])
    pairs = zip(differences.items(), adjusted, strict=True)
    return {name: Tested(one, p) for (name, one), p in pairs}


def _difference(comparison: Comparison, name: str, base: str) -> PairedDifference:
    """Score minus that of the base on common seeds."""
    mine, theirs = comparison.scores.get(name, {}), comparison.scores.get(base, {})
    seeds = sorted(mine.keys() & theirs.keys())
    return paired_difference([mine[seed] for seed in seeds], [theirs[seed] for seed in seeds])


def _line(
    comparison: Comparison,
    base: str,
    variant: str,
    change: Mapping[str, str],
    p_adjusted: float,
    difference: Interval,
) -> dict[str, object]:
    """A line of the table: the base itself, or one change of it."""
    metric = comparison.ranked_by
    apart = [] if variant == base else comparison.gaps_of(difference, variant, base)
    return {
        "comparison": comparison.key,
        "task": comparison.title,
        "base": base,
        "unit": metric.unit,
        **range_of(metric),
        "axis": change["axis"],
        "value": change["value"],
        "p_adjusted": p_adjusted,
        **seen("score", comparison.scores.get(variant, {}).values()),
        **seen("difference", apart),
        "variant": variant,
        **bounds("score", comparison.means.get(variant, NOTHING)),
        **bounds("difference", difference),
        "without_spread": difference.without_spread,
        "red": variant in comparison.red,
    }
