"""What a comparison measured beside the metric that ranks it."""

from pathlib import Path

import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_json, write_run

from reports.blocks import Figure, TableBlock
from reports.curves import legend_of
from reports.folder import RunFolder, read_folder
from reports.render import render
from reports.sections.metric_tables import measures, other_metrics, parts
from reports.tradeoffs import delay_section
from results.row import Row

TASK = "reversal[length=24]"
NAMES = {BASE: 0.9, "scaled_dot": 0.7, "no_attention": 0.4}
OTHERS = ("exact_accuracy", "average_lagging")


def rows(level: float, seed: int, *, looks: bool) -> list[Row]:
    """One cell: the ranking metric, two others, two kinds of parts, and non-neural baselines."""
    value = level + 0.01 * seed
    found = [Row(metric="token_accuracy", value=value, split=s) for s in ("test", "validation")]
    found.append(Row(metric="exact_accuracy", value=value / 2, split="test"))
    if looks:
        lag = 4 * level + seed
        found.append(Row(metric="average_lagging", value=lag, split="test"))
        found.append(
            Row(metric="token_accuracy", value=value, axis="average_lagging", x=lag, split="test")
        )
    for length in (4, 8):
        for metric, part in (("token_accuracy", value - 0.01 * length), ("exact_accuracy", 0.25)):
            found.append(Row(metric=metric, value=part, axis="length", x=length, split="test"))
    for number in (1, 15):
        found.append(
            Row(metric="exact_accuracy", value=number / 64, axis="task", x=number, split="test")
        )
    return [*found, Row(metric="token_accuracy", value=0.2, split="test", baseline="majority")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    names = catalog()
    names["metrics"] = {
        **names["metrics"],  # type: ignore[dict-item]
        "average_lagging": {"title": "Average lagging", "unit": "tokens", "better": "lower"},
        "exact_accuracy": {"title": "Exact match", "unit": "fraction", "better": "higher"},
    }
    records = [
        record(quality_cell(TASK, name, seed), "ok", rows(level, seed, looks=name != BASE))
        for name, level in NAMES.items()
        for seed in range(3)
    ]
    path = tmp_path_factory.mktemp("measures") / "run"
    write_run(path, records=records, catalog_data=names, tasks=[TASK])
    for at, one in enumerate(records):
        notes = {"data": "generated", "interval": f"interval of cell {at}"}
        write_json(path / "artifacts" / f"{one.id}.json", {"notes": notes})
    return read_folder(path)


def shown(folder: RunFolder) -> dict[str, list[list[str]]]:
    (comparison,) = folder.comparisons
    tables = [one for one in measures(folder, comparison, [*NAMES]) if isinstance(one, TableBlock)]
    return {one.title: [[e.text for e in row] for row in one.rows] for one in tables}


def test_all_other_metrics_of_the_test_are_shown_and_none_twice(folder: RunFolder) -> None:
    (comparison,) = folder.comparisons
    assert sorted(other_metrics(comparison)) == sorted(OTHERS)
    table = shown(folder)["Other metrics: reversal"]
    assert [line[0] for line in table] == ["bahdanau", "scaled_dot", "no_attention"]
    assert table[0][1:] == ["0.455 ± 0.012", "—"]  # it looks at everything, so it has no lagging
    assert table[1][1:] == ["0.355 ± 0.012", "3.8 ± 2.5"]


def test_parts_are_those_of_the_ranking_metric_where_it_is_divided(folder: RunFolder) -> None:
    (comparison,) = folder.comparisons
    assert parts(comparison) == [("token_accuracy", "length"), ("exact_accuracy", "task")]
    found = shown(folder)
    by_length = found["reversal: token accuracy (fraction) by length (tokens)"]
    assert by_length[0] == ["bahdanau", "0.870 ± 0.025", "0.830 ± 0.025"]
    by_task = found["reversal: exact match (fraction) by task of the set"]
    assert by_task[2] == ["no_attention", "0.0156", "0.234"]


def test_what_cells_noted_differently_is_shown_with_the_cell(folder: RunFolder) -> None:
    told = shown(folder)["What single cells noted: reversal"]
    assert told[1] == ["bahdanau", "1", "interval", "interval of cell 1"]
    assert not any(line[2] == "data" for line in told)
    assert len(told) == 9


def test_every_stored_metric_of_the_test_stands_in_both_reports(
    folder: RunFolder, tmp_path: Path
) -> None:
    written = render(folder.path, out=tmp_path)
    page, twin = (path.read_text("utf-8") for path in (written.html, written.details))
    frame = folder.frame
    for name in frame[frame["split"] == "test"]["metric"].unique():
        title = folder.catalog.metric(str(name)).title
        assert title in page
        assert title in twin
    assert "interval of cell 8" in page
    assert "interval of cell 8" in twin
    assert "exact match (fraction) by task of the set" in twin


def test_quality_stands_against_delay_where_reading_is_counted(folder: RunFolder) -> None:
    section = delay_section(folder, legend_of(folder))
    assert section is not None
    (figure,) = section.blocks
    assert isinstance(figure, Figure)
    assert "average lagging" in figure.svg


def test_runs_that_count_no_delay_have_no_figure_of_it(tmp_path: Path) -> None:
    records = [
        record(quality_cell(TASK, name, seed), "ok", rows(level, seed, looks=False))
        for name, level in NAMES.items()
        for seed in range(2)
    ]
    run = read_folder(write_run(tmp_path / "run", records=records, tasks=[TASK]))
    assert delay_section(run, legend_of(run)) is None
