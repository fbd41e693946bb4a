"""Tables of a run as pandas frames: numbers with the bounds of their intervals."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from tabulate import tabulate

from reports.blocks import NO_VALUE, clean
from reports.catalog import Catalog, certificate_of, red_reasons
from reports.comparisons import NOTHING, Comparison, comparisons
from reports.numbers import Seen, scaled, with_interval
from results.frame import growth_exponents, speed_summary
from results.statistics import Interval

Certificates = Mapping[str, Any] | None
Costs = dict[tuple[str, ...], tuple[Interval, str]]

LEAST_TIMES = 3
"""Fewer times of training have no interval: a t interval of two is mostly its own error."""

MARKS = {
    "baseline": "the differences are to it",
    "control": "there to be beaten, and no mechanism to choose",
    "red certificate": "a conformance check fails, so it is not ranked",
    "not certified": "no conformance check of it is stored with this run",
    "decoder differs": "the variant brings a decoder or an encoder of its own, as its paper does",
    "search differs": "the variant brings a search of its own, so outputs are found otherwise",
    "other backbone": "another network around it than the baseline's",
    "other protocol": "trained otherwise than the baseline",
    "fewer seeds": "2 of 3 seeds: the mean is of those that have a score",
    "not above": (
        "not above {uniform_baseline} in 2 of 3 seeds: no better in validation than its mean, so "
        "these seeds have failed to learn; their scores are in the mean"
    ),
    "not told from the best": "on a later rank, and still not told from the first line",
}
"""What each mark beside a name means; where its text has numbers, an example stands for all."""

TRAINED = ("train_tokens_per_s", "train_step_time_ms", "decode_tokens_per_s")
"""Averaged over seeds."""
TIMED = ("decode_step_time_ms", "peak_memory_bytes", "forward_flops_analytic_count")
"""Taken from speed cells at one length."""


def ranked_table(
    frame: pd.DataFrame,
    catalog: Catalog | Mapping[str, Any],
    certificates: Certificates,
    *,
    speed: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Rank the variants of each task; ties share a rank.

    Args:
        frame: From `results.frame.rows_of`.
        catalog: Content of `catalog.json`.
        certificates: Content of `certificates.json`; a red one takes the rank and speed away.
        speed: `results.frame.speed_summary` of the frame, if the caller has it.

    Returns:
        One line per comparison and variant, best first, unranked ones last. For each quantity
        there are three columns: `score`, `score_low`, `score_high` and so on; bounds are 95% t
        intervals over seeds, and the 10% and 90% quantiles of rounds for `decode_step_time_ms`.
        `score` and `difference` have the extremes of their seeds, too, in `score_min`, `score_max`
        and `score_seeds`. `timed_seeds` counts the seeds behind times of training.

    """
    known = Catalog.of(catalog)
    found = comparisons(frame, known, certificates)
    costs = costs_at_one_length(speed_summary(frame) if speed is None else speed, known.baseline)
    lines = [
        line for comparison in found for line in _comparison_lines(comparison, costs, certificates)
    ]
    return pd.DataFrame(lines)


def _comparison_lines(
    comparison: Comparison, costs: Costs, certificates: Certificates
) -> list[dict[str, object]]:
    means, ranked, base = comparison.means, comparison.compared, comparison.catalog.baseline
    ranks = comparison.catalog.ranks and comparison.most_seeds > 1
    lines: list[dict[str, Any]] = []
    for variant in comparison.variants:
        line = ranked.get(variant)
        difference = line.difference if line else None
        lines.append(
            {
                "comparison": comparison.key,
                "task": comparison.title,
                "rank": float(line.rank) if line and ranks else math.nan,
                "variant": comparison.catalog.label(variant),
                "selector": variant,
                "marks": ", ".join(marks(comparison, variant, certificates)),
                "metric": comparison.metric,
                "unit": comparison.catalog.metric(comparison.metric).unit,
                "told_from_best": line.told_from_best if line and ranks else None,
                **bounds("score", means.get(variant, NOTHING)),
                **seen("score", comparison.scores.get(variant, {}).values()),
                "seeds": means.get(variant, NOTHING).count,
                **bounds("difference", difference or NOTHING),
                **seen("difference", comparison.differences(variant, comparison.baseline)),
                "p_adjusted": line.p_adjusted if line and ranks else math.nan,
                **_costs(comparison, variant, costs, base),
            }
        )
    side = 1.0 if comparison.better == "lower" else -1.0
    places = {variant: place for place, variant in enumerate(ranked)}

    def order(line: dict[str, Any]) -> tuple[bool, bool, float, int]:
        unranked, unknown = math.isnan(line["rank"]), math.isnan(line["score"])
        place = places.get(line["selector"], len(places))
        return unranked, unknown, side * line["score"] if unranked else 0.0, place

    return sorted(lines, key=order)


def _costs(comparison: Comparison, variant: str, costs: Costs, base: str) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    hidden = variant in comparison.red
    timed_seeds = 0
    for metric in TRAINED:
        mean = NOTHING if hidden else comparison.trained(variant, metric)
        timed_seeds = max(timed_seeds, mean.count)
        if mean.count < LEAST_TIMES:
            mean = replace(mean, low=-math.inf, high=math.inf)
        found |= bounds(metric, mean)
    found["timed_seeds"] = timed_seeds
    for metric in TIMED:
        low_high = NOTHING if hidden else timed(comparison, variant, metric, costs)
        found |= bounds(metric, low_high)
    count = comparison.trained(variant, "parameters_count").estimate
    found["parameters_count"] = count
    reference = comparison.trained(base, "parameters_count").estimate
    found["parameters_ratio"] = count / reference if reference else math.nan
    return found


def timed(comparison: Comparison, variant: str, metric: str, costs: Costs) -> Interval:
    """Median of rounds between its quantiles; a count has neither spread nor bounds."""
    found = costs.get((*comparison.place, variant, metric))
    return NOTHING if found is None else found[0]


def costs_at_one_length(summary: pd.DataFrame, baseline: str) -> Costs:
    """Pick what stands beside the scores from a summary of all timings.

    In each slot this is the shape with most lines, and in it the greatest length that the
    baseline reached.

    Returns:
        Quantity, shape and length by slot, dtype, device, variant and metric.

    """
    found: Costs = {}
    for place, group in summary.dropna(subset="length").groupby(["slot", "dtype", "device"]):
        known = group[group["shape"] == group["shape"].value_counts(sort=True).index[0]]
        mine = known[known["variant"] == baseline]
        length = (known if mine.empty else mine)["length"].max()
        for line in known[known["length"] == length].to_dict("records"):
            key = (*(str(part) for part in place), str(line["variant"]), str(line["metric"]))
            found.setdefault(key, (_quantiles(line), f"{line['shape']} at length {length:g}"))
    return found


def _quantiles(line: Mapping[Any, Any]) -> Interval:
    value, rounds = float(line["median"]), int(line["rounds"])
    if rounds == 1:
        return Interval(estimate=value, low=value, high=value, count=1)
    return Interval(estimate=value, low=float(line["q10"]), high=float(line["q90"]), count=rounds)


def marks(comparison: Comparison, variant: str, certificates: Certificates) -> list[str]:
    """Short labels that a reader must see beside the name."""
    return [text for text, _ in _marks(comparison, variant, certificates)]


def legend_of_marks(found: Iterable[Comparison], certificates: Certificates) -> str:
    """What the marks of some tables mean, those alone that stand there; empty without any."""
    used: dict[str, str] = {}
    for comparison in found:
        uniform_baseline = comparison.catalog.label(comparison.uniform_baseline or "")
        for variant in comparison.variants:
            for text, kind in _marks(comparison, variant, certificates):
                meaning = MARKS[kind].format(uniform_baseline=uniform_baseline)
                used[kind] = (
                    meaning if kind in ("fewer seeds", "not above") else f"{text}: {meaning}"
                )
    return f"{'; '.join(used[kind] for kind in MARKS if kind in used)}." if used else ""


def _marks(
    comparison: Comparison, variant: str, certificates: Certificates
) -> list[tuple[str, str]]:
    """Texts beside a name, each with its key in `MARKS`."""
    catalog, base = comparison.catalog, comparison.catalog.baseline
    unknown = bool(certificates) and certificate_of(certificates, variant) is None
    flags = {
        "baseline": variant == base,
        "control": catalog.flag(variant, "control"),
        "red certificate": variant in comparison.red,
        "not certified": unknown,
        "decoder differs": catalog.flag(variant, "decoder_differs"),
        "search differs": catalog.flag(variant, "search_differs"),
        **{
            f"other {column}": base in comparison.variants
            and comparison.setting(variant, column) != comparison.setting(base, column)
            for column in ("backbone", "protocol")
        },
    }
    if flags["decoder differs"] or flags["search differs"]:
        flags["other backbone"] = False
    found = [(text, text) for text, holds in flags.items() if holds]
    scored, most = len(comparison.scores.get(variant, ())), comparison.most_seeds
    if 0 < scored < most:
        found.append((f"{scored} of {most} seeds", "fewer seeds"))
    lost, seeds = comparison.lost_seeds(variant)
    if lost > 0 and not catalog.flag(variant, "control"):
        uniform_baseline = catalog.label(comparison.uniform_baseline or "")
        found.append((f"not above {uniform_baseline} in {lost} of {seeds} seeds", "not above"))
    line = comparison.compared.get(variant) if catalog.ranks and most > 1 else None
    if line is not None and line.rank > 1 and not line.told_from_best:
        found.append(("not told from the best", "not told from the best"))
    return found


def speed_table(
    frame: pd.DataFrame,
    catalog: Catalog | Mapping[str, Any],
    certificates: Certificates,
    *,
    speed: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Growth of each cost with length, and the ratio to the baseline at the longest length.

    A variant with a red certificate has no line: a wrong result may be as fast as it likes.

    Returns:
        One line per shape, metric and variant: `exponent` with bounds, `lengths`, and at
        `length` the `median`, `q10`, `q90`, `ratio` with bounds, `aa_half_width`, `verdict`.

    """
    known = Catalog.of(catalog)
    summary = (speed_summary(frame) if speed is None else speed).dropna(subset="length")
    summary = summary[~summary["variant"].map(lambda name: bool(red_reasons(certificates, name)))]
    if summary.empty:
        return pd.DataFrame()
    keys = ["shape", "slot", "dtype", "device", "impl", "protocol", "metric", "variant"]
    last = summary.sort_values("length", kind="stable").groupby(keys, as_index=False).last()
    growth = growth_exponents(frame)[[*keys, "exponent", "low", "high", "lengths"]]
    growth = growth.rename(columns={"low": "exponent_low", "high": "exponent_high"})
    table = last.merge(growth, on=keys, how="left", validate="one_to_one")
    table.insert(0, "name", table["variant"].map(known.label))
    if not known.ranks:
        table["verdict"] = ""
    return table.sort_values([*keys[:-1], "median"], kind="stable", ignore_index=True)


def bounds(name: str, interval: Interval) -> dict[str, float | int]:
    """Three columns of a quantity: estimate, low and high."""
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def seen(name: str, values: Iterable[float]) -> dict[str, float | int]:
    """Three columns of a quantity: the extremes of its seeds, and how many these are."""
    found = Seen.of(values)
    return {f"{name}_min": found.low, f"{name}_max": found.high, f"{name}_seeds": found.seeds}


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
        return with_interval(value, low, high, signed=signed, unit=line["unit"], seen=found)
    text = with_interval(value, low, high, signed=signed)
    fewer = name in TRAINED and 0 < line["timed_seeds"] < line["seeds"]
    return f"{text} (n = {line['timed_seeds']})" if fewer and math.isfinite(value) else text


def as_text(table: pd.DataFrame, *, ranks: bool = True) -> str:
    """Print a ranked table for a terminal, one block per task.

    Args:
        table: From `ranked_table`.
        ranks: Whether the preset may rank anything.

    """
    if table.empty:
        return "No quality cell has finished, so there is nothing to compare."
    parts = []
    for (title, metric, unit), group in table.groupby(["task", "metric", "unit"], sort=False):
        rows = [_text_row(dict(line)) for line in group.to_dict("records")]
        heads = ["rank", "variant", str(unit) or "score", "to baseline", "step ms", "MB", "params"]
        body = tabulate(rows, heads, tablefmt="simple", disable_numparse=True, colalign=_ALIGN)
        parts.append(f"{clean(title)}: {clean(metric)}\n{body}")
    if table["rank"].isna().all():
        parts.append(f"Nothing is ranked: {_why_unranked(table, ranks=ranks)}")
    return "\n\n".join(parts)


def _why_unranked(table: pd.DataFrame, *, ranks: bool) -> str:
    """What alone keeps a table without ranks from having some; the first that holds."""
    scored = table[table["seeds"] > 0]
    if scored.empty:
        return "no cell has a value."
    if not ranks:
        return "the preset is too small to tell variants apart."
    if scored["seeds"].max() < 2:
        return "with one seed nothing tells variants apart; --seeds 3 runs more."
    if scored["marks"].str.contains("red certificate").all():
        return "no variant with a value has a green certificate."
    return "no metric of these tasks has a better side, or no green variant has two seeds."


_ALIGN = ("right", "left", *["right"] * 5)


def _text_row(line: dict[Any, Any]) -> list[str]:
    marks_ = f" ({line['marks']})" if line["marks"] else ""
    texts = [
        NO_VALUE if math.isnan(line["rank"]) else str(int(line["rank"])),
        f"{line['variant']}{marks_}",
    ]
    for name, unit in (
        ("score", 1.0),
        ("difference", 1.0),
        ("train_step_time_ms", 1.0),
        ("peak_memory_bytes", 1e6),
    ):
        texts.append(interval_text(line, name, unit, signed=name == "difference"))
    return [clean(text) for text in (*texts, scaled(line["parameters_count"]))]
