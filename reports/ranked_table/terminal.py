"""Ranked tables as text for a terminal."""

import math
from typing import Any

import pandas as pd
from tabulate import tabulate

from reports.blocks import NO_VALUE, clean
from reports.numbers import scaled
from reports.ranked_table.rows import interval_text


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
        return "the preset is too small to show differences."
    if scored["seeds"].max() < 2:
        return "one seed cannot show a significant difference; a run with --seeds 3 may."
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
