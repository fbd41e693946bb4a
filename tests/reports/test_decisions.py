"""What was decided: counts of primary hypotheses, and what is no evidence."""

from dataclasses import replace
from pathlib import Path

from test_choices import BASE, DECIDED, NEW, TIED, UNIFORM, written

from reports.blocks import Bullets, TableBlock
from reports.folder import RunFolder
from reports.needs import needs
from reports.ranked_table.verdicts import decision_counts, verdict_text
from reports.render import render
from reports.sections.decisions import decisions_section


def checked(folder: RunFolder, task: str, why: str) -> RunFolder:
    """The same run, in which a task is a pipeline check."""
    known = folder.catalog
    known.tasks = {**known.tasks, task: replace(known.task(task), pipeline_check=why)}
    return folder


def test_the_table_counts_how_primary_hypotheses_ended(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": TIED})
    section = decisions_section(folder)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    heads = [f"{column.title} {column.unit}".strip() for column in table.columns]
    rows = {row[0].text: dict(zip(heads, row, strict=True)) for row in table.rows}
    # shaw against the baseline and against uniform, the baseline against uniform
    shown = (
        "Tested",
        "Better than bahdanau",
        "Undecided against bahdanau",
        "Better than no_attention",
        "Undecided against no_attention",
    )
    assert [rows["copying"][head].text for head in shown] == ["3", "1", "0", "2", "0"]
    # without a margin in its catalog, a run can show no equivalence
    assert [rows["sorting"][head].text for head in shown] == ["3", "0", "1", "2", "0"]
    text = render(folder.path).markdown.read_text(encoding="utf-8")
    assert "The run decides 5 of 6 primary hypotheses (83%) in 2 comparisons." in text
    assert "Against bahdanau: 1 better, 0 worse, 0 equivalent, 1 undecided." in text
    assert "Against uniform attention: 4 better, 0 worse, 0 equivalent, 0 undecided." in text


def test_a_margin_in_the_catalog_lets_a_run_show_that_two_are_equivalent(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"sorting": TIED})
    metrics = folder.catalog.metrics
    folder.catalog.metrics = {name: replace(one, margin=0.05) for name, one in metrics.items()}
    (comparison,) = folder.comparisons
    assert decision_counts(comparison)["equivalent"] == 1
    line = comparison.compared["scaled_dot"]
    assert verdict_text(line.against_baseline) == "equivalent"


def test_what_is_open_says_how_many_seeds_would_decide(tmp_path: Path) -> None:
    close = {BASE: 0.50, NEW: 0.503, UNIFORM: 0.30}
    (comparison,) = written(tmp_path / "run", {"copying": close}).comparisons
    text = verdict_text(comparison.compared[NEW].against_baseline)
    assert text.startswith("undecided (about ")
    assert text.endswith(" seeds)")


def test_a_pipeline_check_is_in_no_summary_and_is_named_with_its_reason(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", {"copying": DECIDED, "sorting": DECIDED})
    folder = checked(folder, "sorting", "Counts win in every seed.")
    assert [need.title for need in needs(folder)] == ["use of copying"]
    section = decisions_section(folder)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    assert [row[0].text for row in table.rows] == ["copying"]
    (named,) = [block for block in section.blocks if isinstance(block, Bullets)]
    assert named.items == ("sorting: Counts win in every seed.",)
