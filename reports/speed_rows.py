"""The growth of each cost with length as a pandas frame."""

import pandas as pd

from reports.catalog import Catalog, Certificates, red_reasons
from results.frame import growth_exponents, speed_summary
from results.json_values import JsonObject


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
        One line per shape, metric and variant: `exponent` with bounds, `lengths`, and at
        `length` the `median`, `q10`, `q90`, `ratio` with bounds, `aa_half_width`, `verdict`.

    """
    known = Catalog.of(catalog)
    every = speed_summary(frame) if speed is None else speed
    summary = every.dropna(subset="length")
    summary = summary[~summary["variant"].map(lambda name: bool(red_reasons(certificates, name)))]
    if summary.empty:
        return pd.DataFrame()
    keys = ["shape", "slot", "dtype", "device", "impl", "protocol", "metric", "variant"]
    last = summary.sort_values("length", kind="stable").groupby(keys, as_index=False).last()
    growth = growth_exponents(every)[[*keys, "exponent", "low", "high", "lengths"]]
    growth = growth.rename(columns={"low": "exponent_low", "high": "exponent_high"})
    table = last.merge(growth, on=keys, how="left", validate="one_to_one")
    table.insert(0, "name", table["variant"].map(known.label))
    if not known.ranks:
        table["verdict"] = ""
    return table.sort_values([*keys[:-1], "median"], kind="stable", ignore_index=True)
