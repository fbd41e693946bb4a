"""The README's tables are those of the published runs; `--update-golden` rewrites them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.blocks import NO_VALUE
from reports.folder import RunFolder, read_folder
from reports.markdown import escape
from reports.numbers import between
from reports.ranked_table.comparison import Comparison
from reports.sections.reference_scores import level_text, without_levels
from reports.sections.uses_of_attention import best_contender, families, family_title, verdict

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SHOWN = """
conv_attention context_vector shaw_rpr sinusoid pointer_generator copynet linear_attention sparsemax
memn2n raffel_monotonic mocha ssnt hard_reinforce hard_exact luong_local_p tu_coverage scaled_dot
dot additive additive_fourier bahdanau none_state A/A control supervised_attention agreement_trace
"""
"""Variants of the first table, each in the comparison of its default task."""
TIMED = "forward_time_ms"


def published(name: str) -> RunFolder:
    return read_folder(ROOT / "results" / "published" / f"{name}.parquet")


def lines_of(heads: tuple[str, ...], rows: list[tuple[str, ...]], *, left: int) -> str:
    rules = ["---"] * left + ["---:"] * (len(heads) - left)
    cells = [heads, tuple(rules), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def score(comparison: Comparison, name: str | None) -> str:
    return comparison.score_text(name) if name in comparison.scores else NO_VALUE


def mechanisms(folder: RunFolder) -> str:
    """Each variant on its default task, beside both baselines, and the cost of its attention."""
    known, rows = folder.catalog, []
    for short in SHOWN.split():
        (name,) = [one for one, facts in known.variants.items() if facts["short"] == short]
        default_task = known.fact(name, "default_task")
        (comparison, *_) = [
            one
            for one in folder.comparisons
            if name in one.scores and known.task_label(one.task) == default_task
        ]
        mark = " (control)" if known.flag(name, "control") else ""
        row = (comparison.title, f"{short}{mark}", score(comparison, name))
        row += (
            score(comparison, known.baseline),
            score(comparison, comparison.uniform_baseline),
            cost(folder, name, comparison),
        )
        rows.append(tuple(map(escape, row)))
    heads = ("default task (its network)", "variant", "score", "`scaled_dot`", "`uniform`")
    heads += ("forward time, ratio to `scaled_dot`",)
    return lines_of(heads, sorted(rows), left=2)


def cost(folder: RunFolder, name: str, comparison: Comparison) -> str:
    lines = folder.speed_lines
    mine = lines[(lines["variant"] == name) & (lines["metric"] == TIMED)]
    here = mine[mine["slot"] == comparison.place[0]]
    if mine.empty:
        return NO_VALUE
    if name == folder.catalog.baseline:
        return "1"
    line = (mine if here.empty else here).iloc[0]
    return between(line["ratio"], line["ratio_low"], line["ratio_high"])


def chosen(folder: RunFolder) -> Iterator[tuple[str, Comparison]]:
    """All diagnostics, and of each other family the first task on real data, or else the first."""
    known = folder.catalog
    for family, found in families(folder).items():
        real = [one for one in found if not known.is_generated(one.task)] or found
        for comparison in found:
            first = known.task_label(comparison.task) == known.task_label(real[0].task)
            if (
                comparison.uniform_baseline
                and len(comparison.compared) > 2
                and (family == "diagnostics" or first)
            ):
                yield family, comparison


def uses(folder: RunFolder) -> str:
    """The best mean of each use of attention, what it beats, uniform attention, and no network."""
    rows = []
    for family, comparison in chosen(folder):
        best, known = best_contender(comparison), folder.catalog
        levels = without_levels(comparison)
        without = next(iter(levels), "")
        rows.append(
            (
                family_title(family),
                escape(comparison.title),
                escape(known.metric(comparison.metric).arrow),
                f"`{known.label(best)}` {escape(score(comparison, best))}",
                escape(verdict(comparison)),
                escape(score(comparison, comparison.uniform_baseline)),
                escape(f"{without} {level_text(levels[without])}") if without else NO_VALUE,
            )
        )
    heads = ("use", "task (its network)", "ranked by", "best mean", "which is", "`uniform`")
    return lines_of((*heads, "without a network"), rows, left=5)


@pytest.mark.parametrize(
    ("block", "run", "table"), [("mechanisms", "quick", mechanisms), ("uses", "families", uses)]
)
def test_a_table_of_the_readme_is_that_of_the_published_run(block, run, table, update_golden):
    text = README.read_text(encoding="utf-8")
    begin, end = f"<!-- {block}:begin -->\n\n", f"\n<!-- {block}:end -->"
    before, _, rest = text.partition(begin)
    now, _, after = rest.partition(end)
    wanted = table(published(run))
    if update_golden:
        README.write_text(before + begin + wanted + end + after, encoding="utf-8")
        now = wanted
    assert now == wanted
