"""Who is faster than the baseline, in sentences."""

import pandas as pd

from reports.folder import RunFolder
from reports.prose import join
from reports.speed_rows import ONE_LINE, TIMED_TOGETHER, place_text


def speed_sentences(folder: RunFolder) -> list[tuple[str, str]]:
    """Head and sentence for each timed quantity: who is faster beyond the A/A noise."""
    table = folder.speed_lines
    if table.empty:
        return []
    timed = table[table["verdict"] != ""]
    found = []
    for (_, metric, *_), group in timed.groupby(["slot", "metric", *TIMED_TOGETHER], sort=True):
        title = folder.catalog.metric(str(metric)).title
        where = place_text([*group[[*TIMED_TOGETHER]].iloc[0]], timed, whole=False)
        found.append((f"{title}, {where}", _verdicts(folder, group)))
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
            times = [_ratio(line, group["length"].max()) for _, line in mine.iterrows()]
            parts.append(f"{text}: {join(times)}.")
    told = " ".join([*parts, *_crossings(folder, here)]) or "There is nothing to compare."
    return f"Times at the longest length of each variant, at most {group['length'].max():g}. {told}"


def _ratio(line: "pd.Series[float]", longest: float) -> str:
    at = "" if line["length"] == longest else f" at {line['length']:g}"
    return f"{line['name']} (×{line['ratio']:.3g}{at})"


def _crossings(folder: RunFolder, here: pd.DataFrame) -> list[str]:
    """Who is slower than the baseline at one length and faster from another one on."""
    found = []
    for _, line in here[here["verdict"] == "FAST"].iterrows():
        same = [*ONE_LINE, "metric"]
        mine = folder.speed[(folder.speed[same] == line[same]).all(axis=1)]
        mine = mine.sort_values("length")
        slow = mine[mine["verdict"] == "SLOW"]["length"]
        if slow.empty:
            continue
        first = mine[(mine["length"] > slow.max()) & (mine["verdict"] == "FAST")]["length"].min()
        found.append(
            f"{line['name']} is slower up to length {slow.max():g} and faster from {first:g} on."
        )
    return found
