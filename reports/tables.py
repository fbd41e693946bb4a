"""Tables of a run as pandas frames: numbers with the bounds of their intervals."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from reports.catalog import Catalog, certificate_of
from reports.contests import Contest, contests
from reports.numbers import percent, plain, scaled, with_interval
from results.frame import curve, final_values, growth_exponents, speed_summary
from results.statistics import Interval, holm, paired_difference, t_interval

Certificates = Mapping[str, Any] | None

TRAINED = ("train_tokens_per_s", "train_step_time_ms", "decode_tokens_per_s")
"""Averaged over seeds."""
TIMED = ("decode_step_time_ms", "peak_memory_bytes", "forward_flops_analytic_count")
"""Taken from speed cells at one length."""
COUNTED = ("parameters_count",)

NOTHING = Interval(estimate=math.nan, low=-math.inf, high=math.inf, count=0)


def ranked_table(
    frame: pd.DataFrame,
    catalog: Catalog | Mapping[str, Any],
    certificates: Certificates = None,
) -> pd.DataFrame:
    """Rank the variants of each task; ties share a rank.

    Args:
        frame: From `results.frame.load`.
        catalog: Content of `catalog.json`.
        certificates: Content of `certificates.json`; a red one takes the rank and speed away.

    Returns:
        One line per contest and variant, best first, unranked ones last. For each quantity
        there are three columns: `score`, `score_low`, `score_high` and so on; bounds are 95% t
        intervals over seeds, and the 10% and 90% quantiles of rounds for `decode_step_time_ms`.

    """
    known = Catalog.of(catalog)
    found = contests(frame, known, certificates)
    summary = at_one_length(speed_summary(frame), known.baseline)
    lines = [line for contest in found for line in _contest_lines(contest, summary, certificates)]
    return pd.DataFrame(lines)


def _contest_lines(
    contest: Contest, summary: pd.DataFrame, certificates: Certificates
) -> list[dict[str, object]]:
    means = contest.means()
    ranked = {line.variant: line for line in contest.compared()}
    base = contest.catalog.baseline
    lines = []
    for variant in contest.variants:
        line = ranked.get(variant)
        difference = line.difference if line else None
        lines.append(
            {
                "contest": contest.key,
                "task": contest.title,
                "rank": float(line.rank) if line and contest.ranking() else math.nan,
                "variant": contest.catalog.label(variant),
                "selector": variant,
                "marks": ", ".join(marks(contest, variant, certificates)),
                "metric": contest.metric,
                "unit": contest.catalog.metric(contest.metric).unit,
                **_bounds("score", means.get(variant, NOTHING)),
                "seeds": means.get(variant, NOTHING).count,
                **_bounds("difference", difference or NOTHING),
                "p_adjusted": line.p_adjusted if line else math.nan,
                **_costs(contest, variant, summary, base),
            }
        )
    side = 1.0 if contest.better == "lower" else -1.0

    def order(line: dict[str, Any]) -> tuple[bool, float, bool, float]:
        unranked, unknown = math.isnan(line["rank"]), math.isnan(line["score"])
        return unranked, line["rank"] if not unranked else 0.0, unknown, side * line["score"]

    return sorted(lines, key=order)


def _costs(
    contest: Contest, variant: str, summary: pd.DataFrame, base: str
) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    hidden = variant in contest.red
    for metric in TRAINED:
        found |= _bounds(metric, NOTHING if hidden else trained(contest, variant, metric))
    for metric in TIMED:
        low_high = NOTHING if hidden else _timed(contest, variant, metric, summary)
        found |= _bounds(metric, low_high)
    count = trained(contest, variant, "parameters_count").estimate
    found["parameters_count"] = count
    reference = trained(contest, base, "parameters_count").estimate
    found["parameters_ratio"] = count / reference if reference else math.nan
    return found


def trained(contest: Contest, variant: str, metric: str) -> Interval:
    """Mean of a metric that scores no data, over the seeds of a variant."""
    mine = contest.frame[contest.frame["variant"] == variant]
    values = [final_values(mine, metric, split=split)["value"] for split in ("", "train")]
    return t_interval(pd.concat(values).to_numpy(dtype=np.float64))


def _timed(contest: Contest, variant: str, metric: str, summary: pd.DataFrame) -> Interval:
    """Median of rounds between its quantiles; a count has neither spread nor bounds."""
    chosen = summary[(summary["variant"] == variant) & (summary["metric"] == metric)]
    for column in ("slot", "dtype", "device"):
        chosen = chosen[chosen[column] == contest.frame[column].iloc[0]]
    if chosen.empty:
        return NOTHING
    line = chosen.iloc[0]
    value, rounds = float(line["median"]), int(line["rounds"])
    if rounds == 1:
        return Interval(estimate=value, low=value, high=value, count=1)
    return Interval(estimate=value, low=float(line["q10"]), high=float(line["q90"]), count=rounds)


def at_one_length(summary: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Keep the shape with most lines, and in it the greatest length that the baseline reached."""
    known = summary.dropna(subset="length")
    if known.empty:
        return summary
    shape = known["shape"].value_counts(sort=True).index[0]
    known = known[known["shape"] == shape]
    mine = known[known["variant"] == baseline]
    length = (known if mine.empty else mine)["length"].max()
    return known[known["length"] == length]


def marks(contest: Contest, variant: str, certificates: Certificates = None) -> list[str]:
    """Short labels that a reader must see beside the name."""
    catalog, base = contest.catalog, contest.catalog.baseline
    found = []
    if variant == base:
        found.append("baseline")
    if catalog.flag(variant, "control"):
        found.append("control")
    if variant in contest.red:
        found.append("red certificate")
    elif certificates and certificate_of(certificates, variant) is None:
        found.append("not certified")
    if catalog.flag(variant, "wiring_differs"):
        found.append("wiring differs")
    elif base in contest.variants:
        for column in ("backbone", "protocol"):
            if contest.setting(variant, column) != contest.setting(base, column):
                found.append(f"other {column}")
    return found


def speed_table(frame: pd.DataFrame, catalog: Catalog | Mapping[str, Any]) -> pd.DataFrame:
    """Growth of each cost with length, and the ratio to the baseline at the longest length.

    Returns:
        One line per shape, metric and variant: `exponent` with bounds, `lengths`, and at
        `length` the `median`, `q10`, `q90`, `ratio` with bounds, `aa_half_width`, `verdict`.

    """
    known = Catalog.of(catalog)
    summary = speed_summary(frame).dropna(subset="length")
    if summary.empty:
        return pd.DataFrame()
    keys = ["shape", "slot", "dtype", "device", "impl", "protocol", "metric", "variant"]
    last = summary.sort_values("length", kind="stable").groupby(keys, as_index=False).last()
    growth = growth_exponents(frame)[[*keys, "exponent", "low", "high", "lengths"]]
    growth = growth.rename(columns={"low": "exponent_low", "high": "exponent_high"})
    table = last.merge(growth, on=keys, how="left", validate="one_to_one")
    table.insert(0, "name", table["variant"].map(known.label))
    table["verdict"] = table["verdict"].where(known.ranks, "")
    return table.sort_values([*keys[:-1], "median"], kind="stable", ignore_index=True)


def ablation_table(
    frame: pd.DataFrame,
    catalog: Catalog | Mapping[str, Any],
    certificates: Certificates = None,
) -> pd.DataFrame:
    """One changed axis per line, and what the change did to the score on common seeds.

    Returns:
        Columns `task`, `base`, `axis`, `value`, `variant`, `score` and `difference` with
        bounds, `p_adjusted` (Holm over the lines of one task and base), `red`.

    """
    known = Catalog.of(catalog)
    lines = []
    for contest in contests(frame, known, certificates):
        changes = [(name, known.ablation(name)) for name in contest.variants]
        for base in sorted({change["base"] for _, change in changes if change}):
            mine = {name: change for name, change in changes if change and change["base"] == base}
            lines += _ablation_lines(contest, base, mine)
    return pd.DataFrame(lines)


def _ablation_lines(
    contest: Contest, base: str, changes: Mapping[str, Mapping[str, str]]
) -> list[dict[str, object]]:
    found, means = contest.scores(), contest.means()
    differences = {}
    for name in changes:
        seeds = sorted(found.get(name, {}).keys() & found.get(base, {}).keys())
        left = [found[name][seed] for seed in seeds] if seeds else []
        right = [found[base][seed] for seed in seeds] if seeds else []
        differences[name] = paired_difference(left, right)
    adjusted = dict(zip(changes, holm([d.p for d in differences.values()]), strict=True))
    first = {"axis": "(base)", "value": "", "p_adjusted": math.nan}
    common = {"contest": contest.key, "task": contest.title, "base": base}
    lines: list[dict[str, object]] = [
        {
            **common,
            **first,
            "variant": base,
            **_bounds("score", means.get(base, NOTHING)),
            **_bounds("difference", NOTHING),
            "red": base in contest.red,
        }
    ]
    for name, change in sorted(changes.items(), key=lambda item: [*item[1].values()]):
        lines.append(
            {
                **common,
                "axis": change["axis"],
                "value": change["value"],
                "p_adjusted": adjusted[name],
                "variant": name,
                **_bounds("score", means.get(name, NOTHING)),
                **_bounds("difference", differences[name]),
                "red": name in contest.red,
            }
        )
    return lines


def _bounds(name: str, interval: Interval) -> dict[str, float | int]:
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
