"""Ranked tables, timings and other tables of a run as CSV for machines and LaTeX for papers."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from reports.ablation_rows import ablation_table
from reports.blocks import clean, one_line
from reports.catalog import Catalog
from reports.folder import RunFolder, read_folder
from reports.numbers import between, percent, plain, probability, scaled
from reports.ranked_table.rows import interval_text
from reports.sections.reference_scores import baselines_table, published_results_table
from reports.speed_rows import TIMED_TOGETHER
from reports.written_files import own_folder, write_file

ExportLine = dict[Any, Any]
ExportColumn = tuple[str, Callable[[ExportLine], str]]

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "×": r"$\times$",
    "\N{EM DASH}": "---",
    "\ufffd": "?",
}


def export_tables(
    folder: Path, out: Path, *, publish: bool = False, tasks: Sequence[str] = ()
) -> list[Path]:
    """Write some tables as CSV, and those of a paper as LaTeX for the package booktabs.

    They are the ranked tables, the timings, the ablations of axes, the scores of non-neural
    baselines, the published numbers and the list of cells. What else a report has, such as choices,
    decisions or other metrics, is in no file.

    Args:
        folder: A run folder.
        out: Folder to write to; made if missing.
        publish: Name no folder of data.
        tasks: Names of the tasks to write, without timings; none for all.

    Returns:
        The files written: `ranked`, `speed`, `ablation`, `baselines` (non-neural baselines),
        `published_results` (published numbers) and `cells` as `.csv`, without those that have no
        line, and `.tex` for all but the last. `reports.ranked_table.rows` has the columns of
        `ranked.csv`.
    """
    run = read_folder(folder, tasks)
    run = run.as_published() if publish else run
    ablation = ablation_table(run.comparisons)
    tables = {
        "ranked": run.ranked_lines,
        "speed": run.speed_lines,
        "ablation": ablation,
        "baselines": baselines_table(run),
        "published_results": published_results_table(run),
        "cells": _cells(run),
    }
    own_folder(out)
    written = []
    for name, table in tables.items():
        if table.empty:
            continue
        path = out / f"{name}.csv"
        finite = table.replace([math.inf, -math.inf], math.nan)
        lines = finite.map(_cell).to_csv(index=False, lineterminator="\n")
        written.append(write_file(path, lines))
        if name in _COLUMNS:
            path = out / f"{name}.tex"
            written.append(write_file(path, _latex(name, table, run.catalog)))
    return written


def _cell(value: object) -> object:
    """Keep foreign text from being run by a spreadsheet, and write several numbers as one text."""
    if isinstance(value, tuple):
        return " ".join(f"{one:.6g}" for one in value)
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text


def _cells(run: RunFolder) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cell": outcome.record.id,
            "kind": outcome.cell.kind,
            "task": outcome.cell.task,
            "variant": outcome.cell.variant,
            "seed": outcome.cell.seed,
            "status": outcome.record.status,
            "detail": outcome.record.detail,
            "seconds": outcome.record.seconds,
            "command": run.command(outcome.cell.label),
        }
        for outcome in run.outcomes
    )


def escape_latex(text: str) -> str:
    r"""Make plain text mean itself in LaTeX.

    >>> escape_latex("50 % of x_1 & {y}")
    '50 \\% of x\\_1 \\& \\{y\\}'
    """
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def _latex(name: str, table: pd.DataFrame, catalog: Catalog) -> str:
    """One booktabs table for each comparison, shape or base."""
    key, columns = _COLUMNS[name]
    parts = ["% \\usepackage{booktabs}"]
    for group, lines in table.groupby(key, sort=False):
        title = ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)
        parts.append(_tabular(title, [dict(line) for line in lines.to_dict("records")], columns))
    if not catalog.ranks:
        parts.insert(1, f"% The preset {escape_latex(catalog.preset)} ranks nothing.")
    return "\n\n".join(parts) + "\n"


def _tabular(title: str, lines: Iterable[ExportLine], columns: list[ExportColumn]) -> str:
    heads = " & ".join(escape_latex(head) for head, _ in columns)
    rows = [" & ".join(escape_latex(show(line)) for _, show in columns) for line in lines]
    kinds = "".join("l" if head in _WORDS else "r" for head, _ in columns)
    body = " \\\\\n".join(rows)
    return (
        f"\\begin{{table}}\n\\caption{{{escape_latex(title)}}}\n\\begin{{tabular}}{{{kinds}}}\n"
        f"\\toprule\n{heads} \\\\\n\\midrule\n{body} \\\\\n\\bottomrule\n"
        "\\end{tabular}\n\\end{table}"
    )


def _text(name: str) -> Callable[[ExportLine], str]:
    return lambda line: str(line[name])


def _interval(name: str, unit: float = 1.0, *, signed: bool = False) -> Callable[[ExportLine], str]:
    return lambda line: interval_text(line, name, unit, signed=signed)


def _rank(line: ExportLine) -> str:
    return "\N{EM DASH}" if math.isnan(line["rank"]) else str(int(line["rank"]))


def _variant(line: ExportLine) -> str:
    return f"{line['variant']} ({line['marks']})" if line["marks"] else str(line["variant"])


def _quantiles(line: ExportLine) -> str:
    unit = 1e6 if str(line["metric"]).endswith("_bytes") else 1.0
    if str(line["metric"]).endswith("_count"):
        return scaled(line["median"])
    return between(line["median"] / unit, line["q10"] / unit, line["q90"] / unit)


_WORDS = ("Variant", "Metric", "Axis", "Value", "Verdict", "Unit", "What", "Published in")
_COLUMNS: dict[str, tuple[str | list[str], list[ExportColumn]]] = {
    "ranked": (
        "task",
        [
            ("Rank", _rank),
            ("Variant", _variant),
            ("Score", _interval("score")),
            ("Unit", _text("unit")),
            ("To baseline", _interval("difference", signed=True)),
            ("p (Holm)", lambda line: probability(line["p_adjusted"])),
            ("Tokens/s", _interval("train_tokens_per_s")),
            ("Step (ms)", _interval("train_step_time_ms")),
            ("Peak (MB)", _interval("peak_memory_bytes", 1e6)),
            ("Parameters", lambda line: scaled(line["parameters_count"])),
            ("To baseline", lambda line: percent(line["parameters_ratio"])),
        ],
    ),
    "speed": (
        [*TIMED_TOGETHER, "metric"],
        [
            ("Variant", _text("name")),
            ("Length", lambda line: f"{line['length']:g}"),
            ("Median [10 %, 90 %]", _quantiles),
            ("Growth", _interval("exponent")),
            ("Beside baseline", _interval("beside", signed=True)),
            ("To baseline", _interval("ratio")),
            ("Verdict", lambda line: str(line["verdict"]) or "\N{EM DASH}"),
        ],
    ),
    "ablation": (
        ["task", "base"],
        [
            ("Axis", _text("axis")),
            ("Value", _text("value")),
            ("Variant", _text("variant")),
            ("Score", _interval("score")),
            ("To base", _interval("difference", signed=True)),
            ("p (Holm)", lambda line: probability(line["p_adjusted"])),
        ],
    ),
    "baselines": (
        "task",
        [
            ("What", _text("baseline")),
            ("Non-neural baseline", lambda line: plain(line["value"])),
            ("Unit", _text("unit")),
        ],
    ),
    "published_results": (
        "task",
        [
            ("What", _text("what")),
            ("Metric", _text("metric")),
            ("As published", lambda line: plain(line["value"])),
            ("Published in", _text("text")),
        ],
    ),
}
