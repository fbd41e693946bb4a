"""Rows of run folders as one tidy pandas frame, and the tables that reports make of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results.json_values import Json, JsonObject, as_object, as_text
from results.ledger import newest_of_runs
from results.row import Record
from results.speed import SETTING, growth_exponents, speed_summary
from results.statistics import t_interval

__all__ = [
    "COLUMNS",
    "SETTING",
    "curve",
    "final_values",
    "growth_exponents",
    "missing",
    "rows_of",
    "scores",
    "speed_summary",
]

COLUMNS = {
    "cell": "id of the cell",
    "kind": "quality, speed, trial, analysis or exact",
    "task": "canonical task selector; the shape for speed cells",
    "backbone": "canonical backbone selector",
    "variant": "canonical variant selector",
    "slot": "place of the variant in the backbone",
    "protocol": "training or timing settings",
    "impl": "which code computed it",
    "dtype": "parameter and activation type",
    "device": "cpu or cuda",
    "seed": "integer",
    "revisions": "revisions of task, backbone and variant code",
    "task_name": "short name from the catalog, or the selector",
    "variant_name": "short name from the catalog, or the selector",
    "metric": "name ending in its unit; empty in the one line of a cell without a result",
    "value": "float in that unit; NaN in the one line of a cell without a result, and in that of "
    "a metric that the cell has no value of",
    "repeat": "timing round, or 0",
    "axis": "what x counts: step, cpu_s, wall_s, length, or empty",
    "x": "position on the axis, NaN without one",
    "split": "train, validation, test, or empty",
    "baseline": "whose value it is, empty for the variant's own: reference or aa_control of the "
    "same timing round, or a non-neural baseline",
    "status": "ok, or why the cell has no result, or none of this metric",
    "detail": "one sentence, empty for ok",
    "environment": "id of the machine record",
    "code": "hash of the code that computed it; empty if unknown",
    "processor": "what the cell ran on, by that record; empty if unknown",
    "attempt": "how often the cell was run",
    "seconds": "wall time of the cell (s)",
    "finished": "when the cell ended (UTC), empty if unknown",
}
"""Every column of `rows_of`, with its meaning; numbers as numbers, all else as `str`."""

SECONDS = ("cpu_s", "wall_s")
"""Axes of time: processor seconds of training on a CPU, wall seconds on a GPU."""
NUMBERS = {
    "seed": "int64",
    "value": "float64",
    "repeat": "int64",
    "x": "float64",
    "attempt": "int64",
    "seconds": "float64",
}
_Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Places of one cell, and its values there."""
_EMPTY = {"metric": "", "value": np.nan, "repeat": 0, "axis": "", "x": np.nan, "split": ""}


class StoredRun(Protocol):
    """A run folder or a pack, as far as rows are made of it."""

    def records(self) -> list[Record]:
        """The record of every cell."""

    def environments(self) -> dict[str, JsonObject]:
        """Facts of every machine by environment id."""

    def read_json(self, name: str) -> dict[str, Json] | None:
        """What the run says beside its rows."""


def rows_of(sources: Sequence[StoredRun]) -> pd.DataFrame:
    """One line per row of all runs, with the columns of `COLUMNS`.

    The newest record of a cell wins over all runs. A cell that did not end `ok` has one line
    with metric "" and value NaN, after the rows it produced before (a diverged learning curve).
    A cell that ended `ok` without some of its metrics has one line for each, with its own status.
    """
    names = _short_names(sources)
    records = newest_of_runs(record for source in sources for record in source.records())
    machines = {name: facts for one in sources for name, facts in one.environments().items()}
    lines = [line for record in records.values() for line in _lines(record, names, machines)]
    kinds = {name: NUMBERS.get(name, "str") for name in COLUMNS}
    return pd.DataFrame(lines, columns=list(COLUMNS)).astype(kinds)


def _short_names(stores: Iterable[StoredRun]) -> dict[str, str]:
    """Map selectors to the short names of the catalogs, the first folder first."""
    found: dict[str, str] = {}
    for store in stores:
        catalog = as_object(store.read_json("catalog.json"))
        for group in ("variants", "tasks"):
            for selector, facts in as_object(catalog.get(group)).items():
                found.setdefault(selector, as_text(as_object(facts).get("short")) or selector)
    return found


def _lines(
    record: Record, names: Mapping[str, str], machines: Mapping[str, JsonObject]
) -> Iterator[dict[str, object]]:
    task, variant = str(record.cell.get("task", "")), str(record.cell.get("variant", ""))
    chip = "gpu" if str(record.cell.get("device", "")).startswith("cuda") else "cpu"
    common = {
        **record.cell,
        "cell": record.id,
        "task_name": names.get(task, task),
        "variant_name": names.get(variant, variant),
        "status": record.status,
        "detail": record.detail,
        "environment": record.environment,
        "code": record.code,
        "processor": str(machines.get(record.environment, {}).get(chip) or ""),
        "attempt": record.attempt,
        "seconds": record.seconds,
        "finished": record.finished,
    }
    for row in record.rows:
        yield {**common, **vars(row)}
    for one in record.unmeasured:
        yield {**common, **_EMPTY, "baseline": "", **vars(one)}
    if record.status != "ok" or not record.rows:
        yield {**common, **_EMPTY, "baseline": ""}


def final_values(
    frame: pd.DataFrame, metric: str, split: str = "test", kind: str = "quality"
) -> pd.DataFrame:
    """Pick one value per cell that ended `ok`: the row of the metric without an axis.

    Args:
        frame: From `rows_of`.
        metric: Name of the metric.
        split: `test`, `validation`, or "" for metrics that score no data (`parameters_count`).
        kind: Kind of cell; studies (`trial`) never mix with results.

    Returns:
        Columns `cell`, `SETTING`, `seed` and `value`; the median where a cell has repeats.
    """
    keys = ["cell", *SETTING, "seed"]
    chosen = _ok(frame, metric, axis="", split=split)
    chosen = chosen.loc[chosen["kind"] == kind, [*keys, "value"]]
    return _median_of_repeats(chosen, keys)


def scores(values: pd.DataFrame, by: str = "variant") -> dict[str, dict[int, float]]:
    """Turn final values of one task into what `statistics.rank` takes: variant -> seed -> value.

    Raises:
        ValueError: A variant has two values for one seed, because tasks or backbones are mixed.
    """
    twice = values.duplicated([by, "seed"])
    if twice.any():
        first = values[twice].iloc[0]
        raise ValueError(
            f"{first[by]} has two values for seed {first['seed']}: settings are mixed; "
            "choose one task, backbone, slot and protocol first."
        )
    return {
        str(name): dict(zip(group["seed"].tolist(), group["value"].tolist(), strict=True))
        for name, group in values.groupby(by, sort=False)
    }


def _median_of_repeats(values: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One value for each combination of keys; few frames have repeats, and grouping is slow."""
    if not values.duplicated([key for key in keys if key not in SETTING]).any():
        return values.reset_index(drop=True)
    return values.groupby(keys, sort=False)[["value"]].median().reset_index()


def curve(frame: pd.DataFrame, metric: str, axis: str, split: str | None = None) -> pd.DataFrame:
    """Average a metric over seeds at each point of an axis, for cells that ended `ok`.

    On `cpu_s` and `wall_s` seeds never meet at the same x: there the n-th points are averaged, x
    included.

    A cell that ended before others of its setting, because it reached its threshold or the end of
    its budget, keeps its last value on steps and seconds: an average of those alone that go on
    would be one of the failures.

    Args:
        frame: From `rows_of`.
        metric: Name of the metric.
        axis: `step`, `cpu_s`, `wall_s` or `length`.
        split: `test` or `validation`; None for both.

    Returns:
        Columns `SETTING`, `split`, `x`, `mean`, `low`, `high` (95% t interval over seeds,
        infinite for one seed and for seeds without spread) and `seeds`, ordered by x within each
        setting.
    """
    keys = [*SETTING, "split"]
    chosen = _ok(frame, metric, axis, split)[["cell", *keys, "x", "value"]]
    lines = []
    for key, group in _by_setting(chosen).items():
        for x, values in _points(group, axis):
            bounds = t_interval(values)
            found = (x, bounds.estimate, bounds.low, bounds.high, bounds.count)
            lines.append((*key, *found))
    return pd.DataFrame(lines, columns=[*keys, "x", "mean", "low", "high", "seeds"])


def _by_setting(chosen: pd.DataFrame) -> dict[tuple[str, ...], dict[str, _Curve]]:
    """Points of every cell in order of x, the median of repeats, by setting in its order.

    In plain dictionaries: to group by every column of the setting takes pandas ten times as long.
    """
    found: dict[tuple[str, ...], dict[tuple[str, float], list[float]]] = {}
    for cell, *setting, x, value in chosen.itertuples(index=False, name=None):
        points = found.setdefault(tuple(setting), {})
        points.setdefault((cell, x), []).append(value)
    return {setting: _by_cell(found[setting]) for setting in sorted(found)}


def _by_cell(points: Mapping[tuple[str, float], list[float]]) -> dict[str, _Curve]:
    found: dict[str, tuple[list[float], list[float]]] = {}
    for (cell, x), values in sorted(points.items(), key=lambda item: item[0][1]):
        at, height = found.setdefault(cell, ([], []))
        at.append(x)
        height.append(median(values))
    return {cell: (np.array(x), np.array(y)) for cell, (x, y) in found.items()}


def _points(curves: Mapping[str, _Curve], axis: str) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """Each x of one setting, with the values that its cells have there."""
    columns = [*curves.values()]
    if axis in SECONDS:
        count = np.arange(1, 1 + max(x.size for x, _ in columns))
        # where a cell that has ended would be, had it gone on at its pace: the mean over those
        # that go on could jump back
        x = np.mean([np.append(x, x[-1] / x.size * count[x.size :]) for x, _ in columns], axis=0)
        values = [np.append(y, np.full(count.size - y.size, y[-1])) for _, y in columns]
    else:
        x = np.unique(np.concatenate([x for x, _ in columns]))
        # beyond its end a cell keeps its value; the clock may have ended it between two points of
        # the others
        values = [np.interp(x, mine, y, left=np.nan) for mine, y in columns]
    if axis not in ("step", *SECONDS):
        known = zip(columns, values, strict=True)
        values = [np.where(np.isin(x, mine), line, np.nan) for (mine, _), line in known]
    for place, line in zip(x, np.transpose(values), strict=True):
        yield float(place), line[np.isfinite(line)]


def missing(frame: pd.DataFrame) -> pd.DataFrame:
    """List the finished cells without a result: `cell`, `SETTING`, `seed`, `status`, `detail`."""
    holes = frame[(frame["status"] != "ok") & (frame["metric"] == "")]
    columns = ["cell", *SETTING, "seed", "status", "detail"]
    return holes[columns].drop_duplicates("cell", ignore_index=True)


def _ok(frame: pd.DataFrame, metric: str, axis: str, split: str | None = None) -> pd.DataFrame:
    picked = (frame["status"] == "ok") & (frame["metric"] == metric) & (frame["axis"] == axis)
    if split is not None:
        picked &= frame["split"] == split
    return frame[picked & (frame["baseline"] == "")]
