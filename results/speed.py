"""Tables of speed cells: medians, ratios to the reference of the same round, growth with length."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.api.axes import PLAIN
from bench.api.errors import InvalidSelector
from bench.api.selector import Selector, parse, show_value
from results.row import AA_CONTROL, REFERENCE
from results.statistics import growth, ratio_interval, speed_verdict

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
_GROWTH = ["exponent", "low", "high", "lengths", "pieces", "line"]
_BESIDE = ["beside", "beside_low", "beside_high"]
_CLOCKED = ("_time_ms", "_per_s")
"""Endings of what is timed, and so has noise; all else is counted."""


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
    joined = _rounds(frame, baseline)
    lines = [
        {**dict(zip(_GROUP, key, strict=True)), **_summarize(group)}
        for key, group in joined.groupby(_GROUP, sort=False, dropna=False)
    ]
    table = pd.DataFrame(lines, columns=[*_GROUP, *_SUMMARY, *_RATIO])
    return table.sort_values(["shape", "metric", "variant", "length"], ignore_index=True)


def growth_exponents(frame: pd.DataFrame, baseline: str = PLAIN) -> pd.DataFrame:
    """Fit cost = c * length^k to the mean logarithms of each variant and metric.

    Lengths are timed one after another, so rounds of two lengths are not pairs, and a machine that
    is slower for a while moves one length as a whole. That is in no interval of k. It cancels in
    the growth beside the baseline, whose times are of the same rounds.

    Args:
        frame: From `results.frame.rows_of`.
        baseline: Canonical selector of what ratios are to.

    Returns:
        One line per setting, `shape` and `metric` with
        `exponent` (k, dimensionless), its 95% interval `low`, `high` by the spread of rounds, or of
        processes where there are several; NaN in (-inf, inf) for one length, and unbounded for
        what is counted;
        `lengths`: their number;
        `pieces`: k between neighboring lengths, from the shortest on;
        `line`: "straight", "not straight" or "not told", whether k is the same between all lengths;
        `beside`, `beside_low`, `beside_high`: k less that of the baseline, by ratios of the same
        round; NaN where the baseline was not timed at every length.
    """
    keys = [*(name for name in SETTING if name not in ("task", "task_name")), "shape", "metric"]
    rows = _rounds(frame, baseline).dropna(subset="length")
    lines = [
        {**dict(zip(keys, key, strict=True)), **_growth(group)}
        for key, group in rows.groupby(keys, sort=False, dropna=False)
    ]
    return pd.DataFrame(lines, columns=[*keys, *_GROWTH, *_BESIDE])


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


def _rounds(frame: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Every measured value of speed cells, beside the baseline and its twin of the same round."""
    rows = frame[(frame["kind"] == "speed") & (frame["status"] == "ok") & (frame["metric"] != "")]
    own = rows[rows["baseline"] == ""]
    beside = rows[rows["protocol"].map(timed_beside) == baseline]
    joined = _beside(_beside(own, beside, REFERENCE), beside, AA_CONTROL)
    return joined.assign(shape=joined["task"].map(shape_of)).rename(columns={"x": "length"})


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


def _growth(group: pd.DataFrame) -> dict[str, object]:
    """Growth of one cost of one variant over its lengths."""
    exact = not str(group["metric"].iloc[0]).endswith(_CLOCKED)
    own, ratios = dict[float, Sequence[float]](), dict[float, Sequence[float]]()
    lengths, value, reference = (_floats(group[name]) for name in ("length", "value", REFERENCE))
    cells, one = group["cell"].to_numpy(), np.ones_like(value)
    for length in np.unique(lengths):
        here = lengths == length
        own[float(length)] = _unit_logs(value[here], one[here], cells[here])
        ratios[float(length)] = _unit_logs(value[here], reference[here], cells[here])
    found = growth(own, exact=exact)
    beside = growth(ratios if all(map(len, ratios.values())) else {}, exact=exact).slope
    return {
        "exponent": found.slope.estimate,
        "low": found.slope.low,
        "high": found.slope.high,
        "lengths": found.slope.count,
        "pieces": found.pieces,
        "line": found.line,
        "beside": beside.estimate,
        "beside_low": beside.low,
        "beside_high": beside.high,
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
