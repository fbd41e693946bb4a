"""One page over several runs: a row for each use and run, in the order of the runs."""

from dataclasses import replace
from pathlib import Path

from synthetic import BASE
from synthetic_levels import DECIDED, NEW, NOTHING, OTHER, TIED, UNIFORM, written

from bench.docs import choices
from reports.all_runs import DIAGNOSTIC_TITLE, USE_TITLE, choices_in_short, choices_of_runs
from reports.needs import DIAGNOSTICS

ROOT = Path(__file__).parents[2]
FIRST, CHOSEN = BASE.partition("[")[0], NEW.partition("[")[0]
"""As tables call them."""


def told(table):
    titles = [column.title for column in table.columns]
    return [dict(zip(titles, row, strict=True)) for row in table.rows]


def test_runs_of_one_use_stand_together_and_those_without_an_answer_are_left_out(tmp_path: Path):
    long = written(tmp_path / "long", {"copying": TIED})
    short = written(tmp_path / "short", {"reading": DECIDED, "copying": DECIDED, "open": NOTHING})
    uses, diagnostics = choices_of_runs({"long": long, "short": short})
    assert (uses.title, diagnostics.title) == (USE_TITLE, DIAGNOSTIC_TITLE)
    found = [[row[title].text for title in ("Use", "Run", "Variant")] for row in told(uses)]
    assert found == [
        ["Use of copying", "long", FIRST],
        ["", "short", CHOSEN],
        ["Use of reading", "short", CHOSEN],
    ]
    assert told(uses)[1]["Run"].href == "short/report.md"
    turned, _ = choices_of_runs({"short": short, "long": long})
    assert [row["Run"].text for row in told(turned)] == ["short", "long", "short"]
    assert not diagnostics.rows


def test_the_short_table_has_one_row_a_use_those_with_a_gain_first(tmp_path: Path):
    long = written(tmp_path / "long", {"copying": TIED})
    short = written(tmp_path / "short", {"reading": DECIDED, "copying": DECIDED, "open": NOTHING})
    told, table = choices_in_short({"long": long, "short": short})
    found = [[cell.text for cell in row] for row in table.rows]
    assert [(row[0], row[2], row[-1]) for row in found] == [
        ("Use of reading", CHOSEN, "short"),
        ("Use of copying", FIRST, "long"),
    ]
    assert [row[1] for row in found] == ["reading", "copying"]
    assert found[0][5].startswith("yes, p")
    assert found[0][4] == short.comparisons[0].short_score(BASE)
    assert [found[1][at] for at in (4, 5)] == ["—", "—"], "the baseline is not beside itself"
    assert "better than the baseline in 1 of 2 uses" in told
    assert "In 1 the baseline itself is named, and in 0" in told


def test_the_short_table_has_the_notes_of_the_long_row(tmp_path: Path):
    """A difference below the margin, and a baseline without positions that has not learned."""
    levels = {BASE: 0.300, NEW: 0.340, UNIFORM: 0.3002}
    folder = written(tmp_path / "run", {"copying": levels}, positions=(NEW,))
    known = folder.catalog
    known.metrics = {name: replace(one, margin=0.05) for name, one in known.metrics.items()}
    (start, table), (long, _) = choices_in_short({"run": folder}), choices_of_runs({"run": folder})
    (row,), (whole,) = told(table), told(long)
    lacks = ("which has no positions", "which is not above uniform attention")
    below = "a difference below the margin of 0.0500"
    assert row["Score of the baseline"].marks == lacks
    assert row["Better than the baseline"].text.startswith("yes, p")
    assert row["Better than the baseline"].marks == (below,)
    assert whole["Compared with"].marks == (*lacks, below)
    assert start.endswith(
        "Of these 1 gain 1 is smaller than the margin. In 1 of these 1 use the baseline is not "
        "significantly above uniform attention."
    )


def test_of_runs_that_train_equally_long_the_one_with_more_variants_is_shown(tmp_path: Path):
    few = {BASE: 0.5, NEW: 0.9, UNIFORM: 0.3}
    runs = {
        "few": written(tmp_path / "few", {"copying": few}),
        "many": written(tmp_path / "many", {"copying": {**few, OTHER: 0.5}}),
    }
    for equally_long, shown in (((), "few"), (("few", "many"), "many"), (("many",), "few")):
        _, table = choices_in_short(runs, equally_long)
        assert [row[-1].text for row in table.rows] == [shown]


def test_diagnostic_tests_have_a_table_of_their_own(tmp_path: Path):
    folder = written(tmp_path / "run", {"recall": DECIDED}, family=DIAGNOSTICS)
    uses, diagnostics = choices_of_runs({"run": folder})
    assert not uses.rows
    (row,) = told(diagnostics)
    assert row["Variant"].text == CHOSEN


def test_every_run_that_ranks_is_on_the_page():
    packs = {path.stem for path in (ROOT / choices.PUBLISHED).glob("*.parquet")}
    assert {*choices.RUNS} == packs - {
        "claims",
        "erasure",
        "fresh_seeds",
        "milk_latency",
        "quantity_end",
        "serving",
        "serving_gpu",
    }
