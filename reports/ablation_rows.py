"""The ablation table: one axis changed at a time."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from reports.ranked_table.cells import NOTHING
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.rows import bounds, range_of, seen
from results.statistics import holm, paired_difference


def ablation_table(found: Iterable[Comparison]) -> pd.DataFrame:
    """One changed axis per line, and what the change did to the score on common seeds.

    Returns:
        Columns `task`, `base`, `unit`, `axis`, `value`, `variant`, `score` and `difference` with
        bounds and the extremes of their seeds (`score_min` and so on), `p_adjusted` (Holm over the
        lines of one task and base), `without_spread` (seeds say nothing about the error of the
        difference), `red`.

    """
    lines = []
    for comparison in found:
        changes = [(name, comparison.catalog.ablation(name)) for name in comparison.variants]
        for base in sorted({change["base"] for _, change in changes if change}):
            mine = {name: change for name, change in changes if change and change["base"] == base}
            lines += _ablation_lines(comparison, base, mine)
    return pd.DataFrame(lines)


def _ablation_lines(
    comparison: Comparison, base: str, changes: Mapping[str, Mapping[str, str]]
) -> list[dict[str, object]]:
    found, means = comparison.scores, comparison.means
    differences = {}
    for name in changes:
        seeds = sorted(found.get(name, {}).keys() & found.get(base, {}).keys())
        left = [found[name][seed] for seed in seeds] if seeds else []
        right = [found[base][seed] for seed in seeds] if seeds else []
        differences[name] = paired_difference(left, right)
    adjusted = dict(zip(changes, holm([d.p for d in differences.values()]), strict=True))
    first = {"axis": "(base)", "value": "", "p_adjusted": math.nan}
    metric = comparison.ranked_by
    common = {
        "comparison": comparison.key,
        "task": comparison.title,
        "base": base,
        "unit": metric.unit,
        **range_of(metric),
    }
    lines: list[dict[str, object]] = [
        {
            **common,
            **first,
            **seen("score", found.get(base, {}).values()),
            **seen("difference", ()),
            "variant": base,
            **bounds("score", means.get(base, NOTHING)),
            **bounds("difference", NOTHING),
            "without_spread": False,
            "red": base in comparison.red,
        }
    ]
    for name, change in sorted(changes.items(), key=lambda item: [*item[1].values()]):
        lines.append(
            {
                **common,
                **seen("score", found.get(name, {}).values()),
                **seen("difference", comparison.differences(name, base)),
                "axis": change["axis"],
                "value": change["value"],
                "p_adjusted": adjusted[name],
                "variant": name,
                **bounds("score", means.get(name, NOTHING)),
                **bounds("difference", differences[name]),
                "without_spread": differences[name].without_spread,
                "red": name in comparison.red,
            }
        )
    return lines
