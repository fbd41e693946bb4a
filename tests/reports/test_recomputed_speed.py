"""Every verdict on speed of the published pages, computed again from timing rounds.

The rules are those of ADR 5 and docs/statistics.md, written a second time with pandas and SciPy.
The unit is the process where a setting was timed in several, and the round otherwise. All intervals
are t intervals, so nothing here needs a tolerance beyond rounding.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from moderated_again import ROUNDING, Array
from printed_tables import Row, name_of, numbers, says, tables, unescaped
from recomputed import PAGES, Pack, options, pack_of
from scipy import stats

from reports.folder import read_folder
from results.frame import growth_exponents

PACKS = ("quick", "serving", "serving_gpu")
PLACE = ["shape", "slot", "dtype", "device", "impl", "protocol"]
"""Timings that agree in these stand in one table."""
SETTING = [*PLACE, "revisions", "variant", "length", "metric"]


def shape_of(task: str) -> str:
    """What was timed, without its lengths."""
    name, chosen = options(task)
    kept = [f"{key}={value}" for key, value in chosen.items() if not key.endswith("length")]
    return f"{name}[{','.join(kept)}]" if kept else name


def intervals(pack: Pack) -> pd.DataFrame:
    """Log ratios to the baseline and of the A/A control: mean, spread and count by setting."""
    rows = pack.rows
    rows = rows[(rows["kind"] == "speed") & (rows["status"] == "ok") & (rows["metric"] != "")]
    shapes = {task: shape_of(task) for task in rows["task"].unique()}
    rows = rows.assign(shape=rows["task"].map(shapes)).rename(columns={"x": "length"})
    beside = {p: options(p)[1].get("beside", "scaled_dot") for p in rows["protocol"].unique()}
    of_round = ["cell", "metric", "repeat", "length"]
    own = rows[rows["baseline"] == ""]
    for kind in ("reference", "aa_control"):
        other = rows[rows["baseline"] == kind]
        other = other[other["protocol"].map(beside) == pack.baseline]
        other = other[[*of_round, "value"]].rename(columns={"value": kind})
        own = own.merge(other, on=of_round, how="left")
    own = own[own["length"].notna()]
    value, reference, again = (own[n].to_numpy(float) for n in ("value", "reference", "aa_control"))
    own = own.assign(ratio=_logs(value, reference), noise=_logs(again, reference))
    found = own.groupby(SETTING)["value"].median().to_frame("median")
    for name in ("ratio", "noise"):
        rounds = own.groupby(SETTING)[name].agg(["mean", "std", "count"])
        means = own.groupby([*SETTING, "cell"])[name].mean()
        processes = means.groupby(level=SETTING).agg(["mean", "std", "count"])
        units = processes.where(processes["count"] > 1, rounds)
        half = stats.t.ppf(0.975, (units["count"] - 1).clip(lower=1)) * units["std"]
        half = half / np.sqrt(units["count"])
        seen = (units["count"] > 1) & (units["std"] > ROUNDING)
        found[name], found[f"{name}_count"] = units["mean"], units["count"]
        found[f"{name}_std"], found[f"{name}_half"] = units["std"], half.where(seen, np.inf)
    return found.reset_index()


def _logs(above: Array, below: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(above / below)
    return np.where(np.isfinite(logs), logs, np.nan)


def with_verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """FAST and SLOW lie outside 1% and twice the noise, SAME is shown to lie within 2%."""
    low, high = (found["noise"] + sign * found["noise_half"] for sign in (-1, 1))
    ends = [abs(np.exp(bound) - 1) for bound in (low, high)]
    noise = pd.Series(np.maximum(*ends), index=found.index).fillna(np.inf)
    silent = np.log1p(np.maximum(0.01, 2 * noise))
    margin = np.log1p(0.02)
    fast = found["ratio"] + found["ratio_half"] < -silent
    slow = found["ratio"] - found["ratio_half"] > silent
    count = found["ratio_count"]
    error = found["ratio_std"] / np.sqrt(count)
    excess = margin - found["ratio"].abs()
    with np.errstate(divide="ignore", invalid="ignore"):
        p = stats.t.sf(excess / error, (count - 1).clip(lower=1))
    # without any spread the sign test decides
    p = np.where(np.isfinite(found["ratio_half"]), p, np.where(excess > 0, 2.0**-count, 1.0))
    same = (count > 1) & (p < 0.05) & (noise <= 0.02)
    verdict = pd.Series("AMBIGUOUS", index=found.index)
    for word, holds in (("SAME", same), ("SLOW", slow), ("FAST", fast)):
        verdict = verdict.mask(holds & np.isfinite(noise), word)
    timed = found["metric"].str.endswith("_time_ms") & (count > 0)
    return found.assign(aa_half_width=noise, verdict=verdict.where(timed, ""))


@lru_cache
def summary_of(name: str) -> pd.DataFrame:
    return with_verdicts(intervals(pack_of(name)))


def longest(pack: Pack, found: pd.DataFrame) -> pd.DataFrame:
    """What a table prints: the longest length of each variant without a red certificate."""
    green = found[~found["variant"].map(pack.is_red).astype(bool)]
    return green.sort_values("length").groupby([*PLACE, "metric", "variant"]).tail(1)


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
def test_ratios_noise_and_verdicts_at_every_length_are_those_of_other_code(name: str) -> None:
    stored = read_folder(pack_of(name).path).speed.dropna(subset="length")
    both = stored.merge(summary_of(name), on=SETTING, how="outer", suffixes=("", "_again"))
    assert len(both) == len(stored) == len(summary_of(name))
    assert (both["verdict"] == both["verdict_again"]).all()
    assert {"FAST", "SLOW", "AMBIGUOUS"} <= set(both["verdict"])
    for sign, column in ((0, "ratio"), (-1, "ratio_low"), (1, "ratio_high")):
        half = both["ratio_half"] * sign if sign else 0.0
        again = np.exp(both["ratio_again"] + half).where(both["ratio_count"] > 0)
        same = np.isclose(both[column], again, rtol=1e-9, equal_nan=sign == 0)
        assert (same | (both["ratio_count"] == 0)).all(), column
    noise = np.isclose(both["aa_half_width"], both["aa_half_width_again"], rtol=1e-6)
    assert (noise | np.isinf(both["aa_half_width"])).all()
    assert (np.isinf(both["aa_half_width"]) == np.isinf(both["aa_half_width_again"])).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
def test_exponents_of_growth_and_their_intervals_are_those_of_other_code(name: str) -> None:
    rows = pack_of(name).rows
    rows = rows[(rows["kind"] == "speed") & (rows["status"] == "ok") & (rows["baseline"] == "")]
    rows = rows[rows["metric"].str.endswith("_time_ms") & rows["x"].notna()]
    shapes = {task: shape_of(task) for task in rows["task"].unique()}
    rows = rows.assign(shape=rows["task"].map(shapes), log=np.log(rows["value"]))
    keys = [*PLACE, "variant", "metric"]
    again = {key: _growth(one) for key, one in rows.groupby(keys) if one["x"].nunique() > 1}
    stored = growth_exponents(read_folder(pack_of(name).path).frame)
    stored = stored[stored["metric"].str.endswith("_time_ms") & (stored["lengths"] > 1)]
    assert len(stored) == len(again)
    for line in stored.to_dict("records"):
        slope, half = again[tuple(line[key] for key in keys)]
        assert line["exponent"] == pytest.approx(slope, rel=1e-9, abs=1e-9)
        if np.isfinite(line["high"]):
            assert line["high"] - line["exponent"] == pytest.approx(half, rel=1e-6)
    # one is noisy in `serving`, and one without spread in `serving_gpu`
    wide = (stored["high"] - stored["low"]) / 2 > 0.5
    assert wide.sum() <= 1


def _growth(rows: pd.DataFrame) -> tuple[float, float]:
    """Slope of a line through mean logarithms, and half of its interval by Welch."""
    of_length = rows.groupby("x")["log"].agg(["mean", "var", "count"])
    across = np.log(of_length.index.to_numpy(float))
    slope = float(stats.linregress(across, of_length["mean"]).slope)
    weights = (across - across.mean()) / ((across - across.mean()) ** 2).sum()
    parts = weights**2 * (of_length["var"] / of_length["count"]).to_numpy(float)
    freedom = parts.sum() ** 2 / (parts**2 / (of_length["count"].to_numpy(float) - 1)).sum()
    return slope, float(stats.t.ppf(0.975, freedom) * np.sqrt(parts.sum()))


@pytest.mark.parametrize("name", PACKS)
def test_pages_print_these_verdicts(name: str) -> None:
    pack = pack_of(name)
    printed = tables(PAGES / name / "details.md", "Verdict")
    printed = [table for table in printed if "A/A noise" in table.heads]
    shown = longest(pack, summary_of(name))
    timed = shown[shown["metric"].str.endswith("_time_ms")]
    for (*place, metric), group in timed.groupby([*PLACE, "metric"]):
        title = f"{pack.metrics[str(metric)]['title']}: {place[1]} slot"
        expected = {pack.label(line["variant"]): line for line in group.to_dict("records")}
        mine = [
            table
            for table in printed
            if table.heading.startswith(title)
            and f"{place[0]}, {place[2]} on {place[3]}" in table.heading
            and f"impl={place[4]}" in f"{table.heading}, impl=auto"
            and _same_medians(table.rows, expected)
        ]
        assert mine, (title, place)
        for row in mine[0].rows:
            line = expected.get(name_of(row["Variant"]))
            if line is None:  # it lost this metric at every length
                assert row["Verdict"] == "—"
                continue
            is_baseline = line["variant"] == pack.baseline and line["verdict"]
            wanted = "baseline" if is_baseline else line["verdict"] or "—"
            assert row["Verdict"] == wanted, (title, place, row)
            if line["ratio_count"]:
                assert says(numbers(row["To baseline"])[0], np.exp(line["ratio"])), row
            if np.isfinite(line["aa_half_width"]):
                noise = numbers(row["A/A noise"].replace("±", ""))[0]
                assert says(noise, 100 * line["aa_half_width"]), row
        printed.remove(mine[0])
    assert not printed


def _same_medians(rows: tuple[Row, ...], expected: Mapping[str, Mapping[Any, Any]]) -> bool:
    here = {name_of(row["Variant"]): row for row in rows}
    return expected.keys() <= here.keys() and all(
        says(numbers(here[name]["Length"])[0], line["length"])
        and says(numbers(here[name]["Median"])[0], line["median"])
        for name, line in expected.items()
    )


@pytest.mark.parametrize("name", ["serving", "serving_gpu"])
def test_the_first_sentence_counts_these_verdicts(name: str) -> None:
    pack = pack_of(name)
    said = unescaped((PAGES / name / "report.md").read_text(encoding="utf-8").splitlines()[2])
    where = re.search(r"With ([\d,]+) keys .* \((\d+) rows?, (\w+) on (\w+)\)", said)
    assert where is not None
    length, rows, dtype, device = where.groups()
    steps = summary_of(name)
    steps = steps[(steps["metric"] == "decode_step_time_ms") & (steps["variant"] != pack.baseline)]
    steps = steps[(steps["dtype"] == dtype) & (steps["device"] == device)]
    steps = steps[steps["impl"] == "auto"]
    batch = steps["shape"].map(lambda shape: options(shape)[1].get("batch", "2"))
    steps = steps[batch == rows]
    here = steps[steps["length"] == float(length.replace(",", ""))]
    counts = here["verdict"].value_counts()
    fast, slow = counts.get("FAST", 0), counts.get("SLOW", 0)
    assert f"{fast} of {len(here)} variants decode faster than {pack.baseline}" in said
    assert f"and {slow} slower; {len(here) - fast - slow} " in said
    few = steps[steps["length"] == steps["length"].min()]
    faster = sorted(pack.label(one) for one in few[few["verdict"] == "FAST"]["variant"])
    assert f"keys {len(faster)} of {len(few)} " in said
    named = f" ({' and '.join(faster)})" if faster else ""
    assert f"faster{named}. The A/A noise" in said
    named = re.findall(r"(\S+) \(([\d.,]+)×", said.split("Fastest: ")[1])
    fastest = here[here["verdict"] == "FAST"]["variant"].map(pack.label)
    assert {one for one, _ in named} <= {*fastest}


def test_sentences_of_quick_say_who_is_faster() -> None:
    pack, summary = pack_of("quick"), summary_of("quick")
    shown = longest(pack, summary)
    shown = shown[shown["verdict"] != ""]
    lines = (PAGES / "quick" / "details.md").read_text(encoding="utf-8").splitlines()
    said = [unescaped(line) for line in lines if "Times at the longest length" in line]
    groups = shown.groupby(["metric", "slot", "shape"])
    assert len(said) == len(groups)
    for (metric, slot, shape), whole in groups:
        group = whole[whole["variant"] != pack.baseline]
        title = f"- **{pack.metrics[str(metric)]['title']}, {slot} slot, {shape}.**"
        mine = next(one for one in said if one.startswith(title))
        for verdict, words in (
            ("FAST", "Faster than the baseline"),
            ("SLOW", "Slower"),
            ("SAME", "The same within 2%"),
            ("AMBIGUOUS", "Not decided"),
        ):
            here = group[group["verdict"] == verdict]
            names = {pack.label(name): np.exp(at) for name, at in here[["variant", "ratio"]].values}
            told = re.search(rf"{words}: (.*?\))( and (\d+) others?)?\. ", f"{mine} ")
            assert bool(told) == bool(names), (title, verdict)
            if told:
                some = re.findall(r"(\S+) \(×([\d.e+-]+)", told[1])
                assert len(some) + int(told[3] or 0) == len(names), (title, verdict)
                for one, ratio in some:
                    assert float(ratio) == pytest.approx(names[one], rel=0.006), (title, one)
        crossed = re.findall(
            r"(?:^|(?<=\. ))((?:\S+, )*(?:\S+ and )?\S+) (?:is|are) (slower|faster) (up to|at) "
            r"length ([\d, and]+) and (?:slower|faster) from (\d+) on\.",
            mine,
        )
        assert crossed_of(pack, summary, (str(metric), str(slot), str(shape))) == {
            (one, side, how, re.findall(r"\d+", there)[-1], high)
            for names, side, how, there, high in crossed
            for one in re.split(r", | and ", names)
        }


def crossed_of(
    pack: Pack, summary: pd.DataFrame, place: tuple[str, str, str]
) -> set[tuple[str, str, str, str, str]]:
    """Who is slower at one length and faster at the longest, or the other way round.

    Each with where it is so last, whether at all shorter lengths, too, and from where on it is not.
    """
    found = set()
    here = summary[(summary[["metric", "slot", "shape"]] == [*place]).all(axis=1)]
    for variant, lines in here.groupby("variant"):
        verdicts = lines.set_index("length")["verdict"].sort_index()
        last = verdicts.iloc[-1]
        first = {"FAST": "SLOW", "SLOW": "FAST"}.get(last, "")
        before = verdicts[verdicts == first].index
        if not len(before) or pack.is_red(str(variant)):
            continue
        how = "up to" if (verdicts.loc[: before.max()] == first).all() else "at"
        side = "slower" if first == "SLOW" else "faster"
        since = verdicts.index[verdicts.index > verdicts[verdicts != last].index.max()].min()
        name = pack.label(str(variant))
        found.add((name, side, how, f"{before.max():g}", f"{since:g}"))
    return found
