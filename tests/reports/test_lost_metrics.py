"""A timed call that ran out of memory: a dash with the reason, beside the rows of the others."""

from dataclasses import replace

import pytest
from synthetic import LENGTHS, VARIANTS
from synthetic_run import speed_records, write_run

from reports.folder import RunFolder, read_folder
from reports.render import render
from reports.sections.provenance import holes_section
from results.row import Record, Unmeasured

SPENT = "timing ran out of memory: 64 GiB were not there."
METRIC = "decode_step_time_ms"


def without(record: Record) -> Record:
    lost = Unmeasured(metric=METRIC, status="out_of_memory", detail=SPENT)
    never = Unmeasured(metric="forward_weights_time_ms", status="refused", detail="no weights.")
    rows = tuple(row for row in record.rows if row.metric != METRIC)
    return replace(record, rows=rows, unmeasured=(lost, never))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """One variant loses its decode step at every length, another at the longest one."""
    always, late = list(VARIANTS)[1:3]
    records = [
        without(record)
        if record.status == "ok"
        and (
            record.cell["variant"] == always
            or (
                record.cell["variant"] == late
                and f"length={LENGTHS[-1]}" in str(record.cell["task"])
            )
        )
        else record
        for record in speed_records()
    ]
    return read_folder(write_run(tmp_path_factory.mktemp("lost") / "run", records=records))


def test_a_lost_metric_is_a_dash_with_its_reason_and_the_others_stay(folder: RunFolder) -> None:
    name = VARIANTS[list(VARIANTS)[1]].short
    page = render(folder.path, out=folder.path / "out").html.read_text(encoding="utf-8")
    assert f"{name}: out of memory, {SPENT}" in page
    forward = folder.speed_lines[folder.speed_lines["metric"] == "forward_time_ms"]
    assert name in set(forward["name"])
    decode = folder.speed_lines[folder.speed_lines["metric"] == METRIC]
    assert name not in set(decode["name"])


def test_a_metric_that_is_lost_at_the_longest_length_says_why_it_stops(folder: RunFolder) -> None:
    name = VARIANTS[list(VARIANTS)[2]].short
    page = render(folder.path, out=folder.path / "out").html.read_text(encoding="utf-8")
    assert f"{name} stops at length {LENGTHS[-2]:g}, out of memory: {SPENT}" in page


def test_what_is_missing_lists_lost_metrics_and_no_refused_ones(folder: RunFolder) -> None:
    text = str(holes_section(folder))
    assert f"{folder.catalog.metric(METRIC).title}: {SPENT}" in text
    assert "no weights." not in text
