"""Tables of a run as pandas frames: numbers with the bounds of their intervals."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from tabulate import tabulate

from reports.blocks import NO_VALUE, clean
from reports.catalog import Catalog, certificate_of, red_reasons
from reports.contests import NOTHING, Contest, contests
from reports.numbers import scaled, with_interval
from results.frame import growth_exponents, speed_summary
from results.statistics import Interval

Certificates = Mapping[str, Any] | None
Costs = dict[tuple[str, ...], tuple[Interval, str]]

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
        frame: From `results.frame.load`.
        catalog: Content of `catalog.json`.
        certificates: Content of `certificates.json`; a red one takes the rank and speed away.
        speed: `results.frame.speed_summary` of the frame, if the caller has it.

    Returns:
        One line per contest and variant, best first, unranked ones last. For each quantity
        there are three columns: `score`, `score_low`, `score_high` and so on; bounds are 95% t
        intervals over seeds, and the 10% and 90% quantiles of rounds for `decode_step_time_ms`.

    """
    known = Catalog.of(catalog)
    found = contests(frame, known, certificates)
    costs = costs_at_one_length(speed_summary(frame) if speed is None else speed, known.baseline)
    lines = [line for contest in found for line in _contest_lines(contest, costs, certificates)]
    return pd.DataFrame(lines)


def _contest_lines(
    contest: Contest, costs: Costs, certificates: Certificates
) -> list[dict[str, object]]:
    means, ranked, base = contest.means, contest.compared, contest.catalog.baseline
    ranks = contest.catalog.ranks and contest.most_seeds > 1
    lines: list[dict[str, Any]] = []
    for variant in contest.variants:
        line = ranked.get(variant)
        difference = line.difference if line else None
        lines.append(
            {
                "contest": contest.key,
                "task": contest.title,
                "rank": float(line.rank) if line and ranks else math.nan,
                "variant": contest.catalog.label(variant),
                "selector": variant,
                "marks": ", ".join(marks(contest, variant, certificates)),
                "metric": contest.metric,
                "unit": contest.catalog.metric(contest.metric).unit,
                **bounds("score", means.get(variant, NOTHING)),
                "seeds": means.get(variant, NOTHING).count,
                **bounds("difference", difference or NOTHING),
                "p_adjusted": line.p_adjusted if line and ranks else math.nan,
                **_costs(contest, variant, costs, base),
            }
        )
    side = 1.0 if contest.better == "lower" else -1.0

    def order(line: dict[str, Any]) -> tuple[bool, float, bool, float]:
        unranked, unknown = math.isnan(line["rank"]), math.isnan(line["score"])
        return unranked, line["rank"] if not unranked else 0.0, unknown, side * line["score"]

    return sorted(lines, key=order)


def _costs(contest: Contest, variant: str, costs: Costs, base: str) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    hidden = variant in contest.red
    for metric in TRAINED:
        found |= bounds(metric, NOTHING if hidden else contest.trained(variant, metric))
    for metric in TIMED:
        low_high = NOTHING if hidden else timed(contest, variant, metric, costs)
        found |= bounds(metric, low_high)
    count = contest.trained(variant, "parameters_count").estimate
    found["parameters_count"] = count
    reference = contest.trained(base, "parameters_count").estimate
    found["parameters_ratio"] = count / reference if reference else math.nan
    return found


def timed(contest: Contest, variant: str, metric: str, costs: Costs) -> Interval:
    """Median of rounds between its quantiles; a count has neither spread nor bounds."""
    found = costs.get((*contest.place, variant, metric))
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


def marks(contest: Contest, variant: str, certificates: Certificates) -> list[str]:
    """Short labels that a reader must see beside the name."""
    catalog, base = contest.catalog, contest.catalog.baseline
    unknown = bool(certificates) and certificate_of(certificates, variant) is None
    flags = {
        "baseline": variant == base,
        "control": catalog.flag(variant, "control"),
        "red certificate": variant in contest.red,
        "not certified": unknown,
        "wiring differs": catalog.flag(variant, "wiring_differs"),
        "search differs": catalog.flag(variant, "search_differs"),
        **{
            f"other {column}": base in contest.variants
            and contest.setting(variant, column) != contest.setting(base, column)
            for column in ("backbone", "protocol")
        },
    }
    if flags["wiring differs"] or flags["search differs"]:
        flags["other backbone"] = False
    scored, most = len(contest.scores.get(variant, ())), contest.most_seeds
    flags[f"{scored} of {most} seeds"] = 0 < scored < most
    lost, seeds = contest.lost_seeds(variant)
    flags[f"{lost} of {seeds} seeds lost"] = lost > 0 and not catalog.flag(variant, "control")
    return [text for text, holds in flags.items() if holds]


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
        value, low, high = (line[f"{name}{end}"] / unit for end in ("", "_low", "_high"))
        texts.append(with_interval(value, low, high, signed=name == "difference"))
    return [clean(text) for text in (*texts, scaled(line["parameters_count"]))]
