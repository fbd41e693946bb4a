"""The growth of each cost with length as a pandas frame."""

from collections.abc import Sequence

import pandas as pd

from bench.api.axes import PLAIN
from bench.api.cell import Cell
from reports.catalog import Catalog, Certificates, red_reasons
from results.frame import growth_exponents, speed_summary
from results.json_values import JsonObject
from results.speed import shape_of

TIMED_TOGETHER = ("shape", "slot", "dtype", "device", "impl", "protocol")
"""Columns that agree between timings that are compared: one table, one figure, one sentence."""
ONE_LINE = (*TIMED_TOGETHER, "variant")
"""Columns that agree between the lengths of one line of a table."""
USUAL_CODE = "auto"
"""The implementation that a title need not name."""


def speed_table(
    frame: pd.DataFrame,
    catalog: Catalog | JsonObject,
    certificates: Certificates,
    *,
    speed: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Growth of each cost with length, and the ratio to the baseline at the longest length.

    A variant with a red certificate has no line: a wrong result may be as fast as it likes.

    Returns:
        One line per shape, metric and variant: `exponent` with bounds, `lengths`, `pieces`, `line`
        and `beside` with bounds, as `results.frame.growth_exponents` gives them, and at `length`
        the `median`, `q10`, `q90`, `ratio` with bounds, `aa_half_width`, `verdict`.
    """
    known = Catalog.of(catalog)
    baseline = known.baseline or PLAIN
    every = speed_summary(frame, baseline) if speed is None else speed
    summary = every.dropna(subset="length")
    summary = summary[~summary["variant"].map(lambda name: bool(red_reasons(certificates, name)))]
    if summary.empty:
        return pd.DataFrame()
    keys = [*TIMED_TOGETHER, "metric", "variant"]
    # whole lines: `last` of pandas looks for a number in each column, so that a ratio that is
    # missing at the longest length would be that of a shorter one
    last = summary.sort_values("length", kind="stable").groupby(keys).tail(1)
    growth = growth_exponents(frame, baseline).rename(
        columns={"low": "exponent_low", "high": "exponent_high"}
    )
    # of a merged run a variant may have been timed by two revisions, each with growth of its own
    both = [*keys, "revisions"]
    growth = growth[[*both, *(name for name in growth if name not in last)]]
    table = last.merge(growth, on=both, how="left", validate="one_to_one")
    table.insert(0, "name", table["variant"].map(known.label))
    if not known.ranks:
        table["verdict"] = ""
    return table.sort_values([*keys[:-1], "median"], kind="stable", ignore_index=True)


def line_of(cell: Cell) -> tuple[str, ...]:
    """The settings of `ONE_LINE` of a speed cell."""
    return (shape_of(cell.task), *(str(getattr(cell, column)) for column in ONE_LINE[1:]))


def place_text(place: Sequence[object], timed: pd.DataFrame, *, whole: bool = True) -> str:
    """What was timed: code and protocol only where a reader would ask for them.

    Args:
        place: Settings of `TIMED_TOGETHER`.
        timed: All timings of the run.
        whole: Whether shape and format are named where the run has no others, as in a title.
    """
    shape, slot, dtype, device, impl, protocol = map(str, place)
    several = {column for column in TIMED_TOGETHER if timed[column].nunique() > 1}
    # a protocol often goes with a shape, which is told already
    alike = (timed[[*TIMED_TOGETHER[:-1]]] == [*place[:-1]]).all(axis=1)
    words = {
        f"{slot} slot": True,
        shape: whole or "shape" in several,
        f"{dtype} on {device}": whole or bool(several & {"dtype", "device"}),
        f"impl={impl}": impl != USUAL_CODE or "impl" in several,
        protocol: timed.loc[alike, "protocol"].nunique() > 1,
    }
    return ", ".join(word for word, told in words.items() if told)
