"""The rows of a ranked table as a pandas frame: numbers with the bounds of their intervals."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from reports.catalog import Certificates, MetricInfo
from reports.numbers import Seen, with_interval
from reports.ranked_table.cells import NOTHING
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.costs import Costs, timed
from reports.ranked_table.marks import marks
from reports.ranked_table.verdicts import planned, planned_text
from results.statistics import Interval

LEAST_TIMES = 3
"""Fewer times of training have no interval: a t interval of two is mostly its own error."""

TRAINED = ("train_tokens_per_s", "train_step_time_ms", "decode_tokens_per_s")
"""Averaged over seeds."""
TIMED = ("decode_step_time_ms", "peak_memory_bytes", "forward_flops_analytic_count")
"""Taken from speed cells at one length."""


def ranked_lines(
    found: Iterable[Comparison], costs: Costs, certificates: Certificates
) -> pd.DataFrame:
    """Rank the variants of each comparison; ties share a rank.

    Args:
        found: Comparisons, each by the metric that its table shows.
        costs: Timings that are shown with the scores.
        certificates: Content of `certificates.json`; a red one takes the rank and speed away.

    Returns:
        One line per comparison and variant, best first, unranked ones last. For each quantity
        there are three columns: `score`, `score_low`, `score_high` and so on; bounds are 95% t
        intervals over seeds, and the 10% and 90% quantiles of rounds for `decode_step_time_ms`.
        `score` and `difference` have the extremes of their seeds, too, in `score_min`, `score_max`
        and `score_seeds`. `verdict` and `verdict_uniform` say how the tests against the baseline
        and the uniform baseline ended; these, `p_adjusted`, `effect_size` and
        `detectable_difference`, the least that 80% of runs would find, are of the whole test also
        where the table ranks by a part of it or by steps. There `whole_score` is the score of the
        whole test by `whole_metric`; both are empty elsewhere. `timed_seeds` counts the seeds
        behind times of training.
    """
    lines = [
        line for comparison in found for line in _comparison_lines(comparison, costs, certificates)
    ]
    return pd.DataFrame(lines)


def _comparison_lines(
    comparison: Comparison, costs: Costs, certificates: Certificates
) -> list[dict[str, Any]]:
    """The lines of a comparison, in their order."""
    lines = [_line(comparison, variant, costs, certificates) for variant in comparison.variants]
    side = 1.0 if comparison.better == "lower" else -1.0
    # those that never reached a threshold are in the order of the whole test
    plain = comparison.whole.compared
    places = {
        name: place for place, name in enumerate(dict.fromkeys([*comparison.compared, *plain]))
    }

    def order(line: dict[str, Any]) -> tuple[bool, bool, float, int]:
        unranked, unknown = math.isnan(line["rank"]), math.isnan(line["score"])
        place = places.get(line["selector"], len(places))
        known = unranked and not unknown
        return unranked, unknown, side * line["score"] if known else 0.0, place

    return sorted(lines, key=order)


def _line(
    comparison: Comparison, variant: str, costs: Costs, certificates: Certificates
) -> dict[str, Any]:
    """What is known of one variant."""
    catalog, line = comparison.catalog, comparison.compared.get(variant)
    ranks = catalog.ranks and comparison.most_seeds > 1
    difference, whole = line.difference if line else None, comparison.whole
    against = planned(comparison, variant, whole.baseline)
    tested = whole.compared[variant].difference if variant in whole.compared else None
    gaps = comparison.gaps_of(difference, variant, comparison.baseline)
    return {
        "comparison": comparison.key,
        "task": comparison.title,
        "rank": float(line.rank) if line and ranks else math.nan,
        "variant": catalog.label(variant),
        "selector": variant,
        "marks": ", ".join(marks(comparison, variant, certificates)),
        "metric": comparison.metric,
        "unit": comparison.ranked_by.unit,
        **range_of(comparison.ranked_by),
        "differs_from_best": line.differs_from_best if line and ranks else None,
        **bounds("score", comparison.means.get(variant, NOTHING)),
        **seen("score", comparison.scores.get(variant, {}).values()),
        "seeds": comparison.whole.means.get(variant, NOTHING).count,
        **bounds("difference", difference or NOTHING),
        **seen("difference", gaps),
        "p_adjusted": against.p_adjusted if against else math.nan,
        "verdict": planned_text(comparison, variant, whole.baseline),
        "verdict_uniform": planned_text(comparison, variant, comparison.uniform_baseline),
        "effect_size": tested.effect_size if tested else math.nan,
        "detectable_difference": against.detectable if against else math.nan,
        **_of_the_whole_test(comparison, variant),
        **_costs(comparison, variant, costs, catalog.baseline),
    }


def _of_the_whole_test(comparison: Comparison, variant: str) -> dict[str, Any]:
    """The score by the declared metric; nothing where that is the score of the table."""
    plain = comparison.plain
    mean = plain.means.get(variant, NOTHING) if plain else NOTHING
    return {"whole_metric": plain.metric if plain else "", **bounds("whole_score", mean)}


def _costs(comparison: Comparison, variant: str, costs: Costs, base: str) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    hidden = variant in comparison.red
    timed_seeds = 0
    for metric in TRAINED:
        mean = NOTHING if hidden else comparison.cells.trained(variant, metric)
        timed_seeds = max(timed_seeds, mean.count)
        if mean.count < LEAST_TIMES:
            mean = replace(mean, low=-math.inf, high=math.inf)
        found |= bounds(metric, mean)
    found["timed_seeds"] = timed_seeds
    for metric in TIMED:
        low_high = NOTHING if hidden else timed(comparison, variant, metric, costs)
        found |= bounds(metric, low_high)
    count = comparison.cells.trained(variant, "parameters_count").estimate
    found["parameters_count"] = count
    reference = comparison.cells.trained(base, "parameters_count").estimate
    found["parameters_ratio"] = count / reference if reference else math.nan
    return found


def bounds(name: str, interval: Interval) -> dict[str, float | int]:
    """Three columns of a quantity: estimate, low and high."""
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def seen(name: str, values: Iterable[float]) -> dict[str, float | int]:
    """Three columns of a quantity: the extremes of its seeds, and how many these are."""
    found = Seen.of(values)
    return {f"{name}_min": found.low, f"{name}_max": found.high, f"{name}_seeds": found.seeds}


def range_of(metric: MetricInfo) -> dict[str, float]:
    """Two columns of a metric: least and greatest value that it can have."""
    return dict(zip(("least", "most"), metric.limits, strict=True))


def interval_text(
    line: Mapping[Any, Any], name: str, unit: float = 1.0, *, signed: bool = False
) -> str:
    """Print a quantity of a table line with its bounds, in multiples of `unit`.

    Scores and their differences keep to the range of the metric. Times of training say how many
    they are where these are fewer than the seeds.
    """
    value, low, high = (line[f"{name}{end}"] / unit for end in ("", "_low", "_high"))
    if f"{name}_min" in line:
        found = Seen(*(line[f"{name}_{end}"] for end in ("min", "max", "seeds")))
        limits = (line["least"], line["most"])
        return with_interval(value, low, high, signed=signed, limits=limits, seen=found)
    text = with_interval(value, low, high, signed=signed)
    fewer = name in TRAINED and 0 < line["timed_seeds"] < line["seeds"]
    return f"{text} (n = {line['timed_seeds']})" if fewer and math.isfinite(value) else text
