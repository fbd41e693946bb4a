"""Who is faster or slower than the baseline, in sentences."""

from collections.abc import Iterator, Mapping
from itertools import takewhile

import pandas as pd

from reports.folder import RunFolder
from reports.prose import join
from reports.speed_rows import ONE_LINE, TIMED_TOGETHER, place_text

OTHER_SIDE = {"FAST": "SLOW", "SLOW": "FAST"}
SAID = {"FAST": "faster", "SLOW": "slower"}


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


def _crossings(folder: RunFolder, here: pd.DataFrame) -> Iterator[str]:
    """Whose times cross those of the baseline between two lengths, in either direction."""
    same, groups = [*ONE_LINE, "metric"], dict[str, list[str]]()
    for last in OTHER_SIDE:
        for _, line in here[here["verdict"] == last].iterrows():
            mine = folder.speed[(folder.speed[same] == line[same]).all(axis=1)]
            mine = mine.sort_values("length")
            told = _crossing(dict(zip(mine["length"], mine["verdict"], strict=True)))
            groups.setdefault(told, []).append(str(line["name"]))
    for told, names in groups.items():
        if told:
            yield f"{join(names, len(names))} {'is' if len(names) == 1 else 'are'} {told}."


def _crossing(verdicts: Mapping[float, str]) -> str:
    """Where a variant is on the one side and from where on it is on the other; empty for no such.

    >>> _crossing({256: "SLOW", 1024: "AMBIGUOUS", 4096: "FAST"})
    'slower up to length 256 and faster from 4096 on'
    >>> _crossing({256: "SLOW", 1024: "FAST", 4096: "SLOW"})
    'faster at length 1024 and slower from 4096 on'

    Args:
        verdicts: By length, in order; the last is FAST or SLOW.
    """
    last = [*verdicts.values()][-1]
    before = [length for length, one in verdicts.items() if one == OTHER_SIDE[last]]
    if not before:
        return ""
    shorter = [length for length in verdicts if length <= before[-1]]
    at = join([f"{length:g}" for length in before], len(before))
    where = f"up to length {before[-1]:g}" if before == shorter else f"at length {at}"
    since = [*takewhile(lambda length: verdicts[length] == last, reversed([*verdicts]))][-1]
    return f"{SAID[OTHER_SIDE[last]]} {where} and {SAID[last]} from {since:g} on"
