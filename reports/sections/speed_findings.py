"""Who is faster than the baseline, in sentences."""

import pandas as pd

from reports.folder import RunFolder
from reports.prose import join


def speed_sentences(folder: RunFolder) -> list[tuple[str, str]]:
    """Head and sentence for each timed quantity: who is faster beyond the A/A noise."""
    table = folder.speed_lines
    if table.empty:
        return []
    timed = table[table["verdict"] != ""]
    found = []
    for (slot, metric, _), group in timed.groupby(["slot", "metric", "shape"], sort=True):
        title = folder.catalog.metric(str(metric)).title
        found.append((f"{title}, {slot} slot", _verdicts(folder, group)))
    return found


def _verdicts(folder: RunFolder, group: pd.DataFrame) -> str:
    here = group[group["variant"] != folder.catalog.baseline]
    parts = []
    for verdict, text in (
        ("FAST", "Faster than the baseline"),
        ("SLOW", "Slower"),
        ("SAME", "The same within 2%"),
        ("AMBIGUOUS", "Not decided"),
    ):
        mine = here[here["verdict"] == verdict].sort_values("ratio", kind="stable")
        if len(mine):
            times = [f"{line['name']} (×{line['ratio']:.3g})" for _, line in mine.iterrows()]
            parts.append(f"{text}: {join(times)}.")
    told = " ".join(parts) or "There is nothing to compare."
    return f"Times at the longest length of each variant, at most {group['length'].max():g}. {told}"
