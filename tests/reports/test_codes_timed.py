"""A run that timed two codes: neither a table, a figure nor a reason mixes them."""

from dataclasses import replace

import pytest
from synthetic import (
    BASE,
    LENGTHS,
    TASKS,
    VARIANTS,
    quality_cell,
    quality_rows,
    record,
    speed_cell,
    speed_rows,
)
from synthetic_run import quality_records, write_run

from reports.blocks import TableBlock
from reports.curves import legend_of, speed_figures
from reports.folder import read_folder
from reports.missing_values import why_no_speed
from reports.sections.speed import speed_section

OTHER = "scaled_dot"
WHY = "the fused code has no form of it."


def timed(name, length, impl, status="ok"):
    """A timing by one code; that of `sdpa` is ten times as fast."""
    cell = replace(speed_cell(name, length), impl=impl)
    rows = [
        replace(row, value=row.value / (10 if impl == "sdpa" else 1))
        for row in speed_rows(VARIANTS[name], length)
    ]
    return record(cell, status, rows if status == "ok" else (), "" if status == "ok" else WHY)


@pytest.fixture
def two_codes(tmp_path):
    """Trained and timed with the usual code; timed with another one, which fails at the end."""
    task = next(iter(TASKS))
    records = [*quality_records([task], seeds=2)]
    records += [timed(name, n, "auto") for name in (BASE, OTHER) for n in LENGTHS[:-1]]
    records += [timed(BASE, length, "sdpa") for length in LENGTHS]
    records += [timed(OTHER, length, "sdpa") for length in LENGTHS[:-1]]
    records.append(timed(OTHER, LENGTHS[-1], "sdpa", "refused"))
    return read_folder(write_run(tmp_path / "run", records=records, tasks=[task]))


def forward_tables(folder):
    """The tables of one quantity."""
    blocks = speed_section(folder, legend_of(folder)).blocks
    tables = [block for block in blocks if isinstance(block, TableBlock)]
    return [table for table in tables if table.title.startswith("Forward:")]


def test_each_code_has_a_table_and_a_figure_of_its_own(two_codes):
    forward = forward_tables(two_codes)
    assert [one.title.rpartition(", ")[2] for one in forward] == ["impl=auto", "impl=sdpa"]
    assert [len(one.rows) for one in forward] == [2, 2]
    figures = speed_figures(two_codes, legend_of(two_codes))
    assert [one.title.rpartition(", ")[2] for one in figures] == ["impl=auto", "impl=sdpa"]


def test_a_reason_is_of_the_code_that_a_line_is_of(two_codes):
    helps = {
        one.title.rpartition("=")[2]: " ".join(row[1].help for row in one.rows)
        for one in forward_tables(two_codes)
    }
    assert WHY in helps["sdpa"]
    assert WHY not in helps["auto"]
    (comparison,) = two_codes.comparisons
    assert WHY not in why_no_speed(two_codes, comparison, OTHER)


def test_scores_stand_beside_the_times_of_the_code_that_computed_them(two_codes):
    lines = two_codes.ranked_lines.set_index("selector")
    slow = two_codes.speed.query("impl == 'auto' and metric == 'decode_step_time_ms'")
    slow = slow[slow["length"] == LENGTHS[-2]].set_index("variant")["median"]
    assert lines.loc[OTHER, "decode_step_time_ms"] == pytest.approx(slow[OTHER])


def test_without_a_timing_in_its_format_the_reason_says_so(tmp_path):
    task = next(iter(TASKS))
    cells = [replace(quality_cell(task, BASE, seed), dtype="bfloat16") for seed in range(2)]
    records = [record(cell, "ok", quality_rows(task, VARIANTS[BASE], cell.seed)) for cell in cells]
    records.append(timed(BASE, 64, "auto"))
    folder = read_folder(write_run(tmp_path / "run", records=records, tasks=[task]))
    (comparison,) = folder.comparisons
    assert why_no_speed(folder, comparison, BASE).endswith(
        "no speed cell was asked for in the slot cross, bfloat16 on cpu."
    )
