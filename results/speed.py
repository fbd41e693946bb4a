"""Tables of speed cells: medians, ratios to the reference of the same round, growth with length."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.api.axes import PLAIN
from bench.api.errors import InvalidSelector
from bench.api.selector import Selector, parse, show_value
from results.row import AA_CONTROL, REFERENCE
from results.statistics import log_log_slope, ratio_interval, speed_verdict

SETTING = [
    "kind",
    "task",
    "task_name",
    "backbone",
    "variant",
    "variant_name",
    "slot",
    "protocol",
    "impl",
    "dtype",
    "device",
    "revisions",
]
"""Columns that agree between the seeds of one setting."""

_GROUP = [*SETTING, "shape", "length", "metric"]
_SUMMARY = ["median", "q10", "q90", "rounds", "processes"]
_RATIO = ["ratio", "ratio_low", "ratio_high", "aa_half_width", "verdict"]
_ROUND = ["cell", "metric", "repeat", "x"]


def speed_summary(frame: pd.DataFrame, baseline: str = PLAIN) -> pd.DataFrame:
    """Summarize the rounds of each variant at each length, for speed cells that ended `ok`.

    The unit of analysis is the process where a setting was timed in several (one seed each), and
    the round otherwise; raw samples of one round never count as independent.

    Args:
        frame: From `results.frame.rows_of`.
        baseline: Canonical selector of what ratios are to. What was timed beside another variant
            has none.

    Returns:
        One line per setting, length and metric, with `SETTING`, `shape` (the task without its
        lengths), `length` and `metric`, then
        `median`, `q10`, `q90`: of all rounds, in the unit of the metric; `rounds`, `processes`;
        `ratio`, `ratio_low`, `ratio_high`: value over the reference of the same round, as
        exp(mean log ratio) with a 95% t interval; NaN in (0, inf) without a reference, and
        (0, inf) around a ratio without spread;
        `aa_half_width`: how far from 1 the reference timed twice may be, as a fraction (the
        farther end of its interval); inf without a control;
        `verdict`: FAST, SLOW, SAME or AMBIGUOUS for times; empty for all else.
    """
    rows = frame[(frame["kind"] == "speed") & (frame["status"] == "ok") & (frame["metric"] != "")]
    own = rows[rows["baseline"] == ""]
    beside = rows[rows["protocol"].map(timed_beside) == baseline]
    joined = _beside(_beside(own, beside, REFERENCE), beside, AA_CONTROL)
    joined = joined.assign(shape=joined["task"].map(shape_of)).rename(columns={"x": "length"})
    lines = [
        {**dict(zip(_GROUP, key, strict=True)), **_summarize(group)}
        for key, group in joined.groupby(_GROUP, sort=False, dropna=False)
    ]
    table = pd.DataFrame(lines, columns=[*_GROUP, *_SUMMARY, *_RATIO])
    return table.sort_values(["shape", "metric", "variant", "length"], ignore_index=True)


def growth_exponents(summary: pd.DataFrame) -> pd.DataFrame:
    """Fit cost = c * length^k to the medians of each variant and metric.

    Args:
        summary: From `speed_summary`.

    Returns:
        One line per setting, `shape` and `metric` with `exponent` (k, dimensionless), its 95% t
        interval `low`, `high`, and `lengths`, their number; below three lengths the exponent is
        NaN in (-inf, inf).
    """
    keys = [*(name for name in SETTING if name not in ("task", "task_name")), "shape", "metric"]
    lines = []
    for key, group in summary.dropna(subset="length").groupby(keys, sort=False):
        slope = log_log_slope(_floats(group["length"]), _floats(group["median"]))
        lines.append(
            {
                **dict(zip(keys, key, strict=True)),
                "exponent": slope.estimate,
                "low": slope.low,
                "high": slope.high,
                "lengths": slope.count,
            }
        )
    return pd.DataFrame(lines, columns=[*keys, "exponent", "low", "high", "lengths"])


def timed_beside(protocol: str) -> str:
    """The variant whose times of the same rounds stand in a cell, by its timing protocol.

    >>> timed_beside("rounds[beside=dot,count=5]"), timed_beside("rounds")
    ('dot', 'scaled_dot')
    """
    try:
        return show_value(parse(protocol).options.get("beside", (Selector(PLAIN),)))
    except InvalidSelector:
        return ""


def shape_of(task: str) -> str:
    """Drop the lengths from a task selector, so that one shape at several lengths has one name.

    >>> shape_of("attend[batch=4,length=128,source_length=64]")
    'attend[batch=4]'
    """
    try:
        selector = parse(task)
    except InvalidSelector:
        return task
    kept = {key: value for key, value in selector.options.items() if not key.endswith("length")}
    return Selector(selector.name, kept).show()


def _beside(own: pd.DataFrame, rows: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Put the baseline's value of the same cell, metric, round and length in a column."""
    other = rows[rows["baseline"] == baseline]
    other = other[[*_ROUND, "value"]].rename(columns={"value": baseline})
    return own.merge(other, on=_ROUND, how="left", validate="many_to_one")


def _summarize(group: pd.DataFrame) -> dict[str, object]:
    value, reference, aa_control = (
        _floats(group[name]) for name in ("value", REFERENCE, AA_CONTROL)
    )
    cells = group["cell"].to_numpy()
    logs = _unit_logs(value, reference, cells)
    bounds = ratio_interval(logs)
    noise = ratio_interval(_unit_logs(aa_control, reference, cells))
    aa_half_width = max(abs(noise.low - 1), abs(noise.high - 1))
    timed = str(group["metric"].iloc[0]).endswith("_time_ms") and bool(len(logs))
    return {
        "median": float(np.median(value)),
        "q10": float(np.quantile(value, 0.1)),
        "q90": float(np.quantile(value, 0.9)),
        "rounds": len(group),
        "processes": len(set(cells)),
        "ratio": bounds.estimate,
        "ratio_low": bounds.low,
        "ratio_high": bounds.high,
        "aa_half_width": aa_half_width,
        "verdict": speed_verdict(logs, aa_half_width) if timed else "",
    }


def _unit_logs(
    above: NDArray[np.float64], below: NDArray[np.float64], cells: NDArray[np.object_]
) -> Sequence[float]:
    """Log ratios of the independent units: means of processes if there are several, else rounds."""
    known = (above > 0) & (below > 0)
    logs, owners = np.log(above[known] / below[known]), cells[known]
    if len(set(owners)) < 2:
        return [float(log) for log in logs]
    return [float(logs[owners == owner].mean()) for owner in dict.fromkeys(owners)]


def _floats(column: "pd.Series[float]") -> NDArray[np.float64]:
    return np.asarray(column, dtype=np.float64)
