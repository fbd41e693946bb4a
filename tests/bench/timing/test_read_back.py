"""The tables of `results` understand the rows that are measured here."""

from dataclasses import asdict
from itertools import count

import pytest

from bench.api.cell import Cell
from bench.timing.block import measure_block
from bench.timing.shape import AttendShape, parse_rounds
from results import frame as frames
from results.row import Record
from results.store import Store

LENGTHS = (32, 64, 128)


def cell(variant, length):
    return Cell(
        kind="speed",
        task=AttendShape(batch=1, heads=1, length=length, width=4).show(),
        backbone="none",
        variant=variant,
        slot="causal",
        protocol=parse_rounds("rounds[count=3,workloads=forward+forward_backward]").show(),
    )


@pytest.fixture
def frame(tmp_path):
    ticks = count()
    with Store.create(tmp_path / "run") as store:
        for length in LENGTHS:
            cells = [cell("scaled_dot", length), cell("uniform", length)]
            found = measure_block(cells, cells[0], clock=lambda: next(ticks) * 1e-3)
            for one in cells:
                rows, unmeasured = found[one.id]
                assert not unmeasured
                store.append(
                    Record(cell=asdict(one), id=one.id, status="ok", environment="e", rows=rows)
                )
    return frames.rows_of([Store(tmp_path / "run")])


def test_a_clock_that_always_says_the_same_shows_equal_ratios_and_no_verdict(frame):
    """Without spread nothing is known of the error, so not even "the same" is shown."""
    summary = frames.speed_summary(frame)
    times = summary[summary["metric"].str.endswith("_time_ms")]
    assert len(times) == 2 * 2 * len(LENGTHS)
    assert set(times["verdict"]) == {"AMBIGUOUS"}
    assert times["ratio"].tolist() == pytest.approx([1.0] * len(times))
    memory = summary[summary["metric"] == "peak_memory_bytes"].set_index(["variant", "length"])
    assert memory.loc[("uniform", 128), "ratio"] > 1


def test_peak_memory_of_weights_in_memory_grows_with_the_square_of_the_length(frame):
    growth = frames.growth_exponents(frame).set_index(["variant", "metric"])
    assert 1.7 < growth.loc[("uniform", "peak_memory_bytes"), "exponent"] < 2.1
    assert growth.loc[("scaled_dot", "forward_flops_counted_count"), "exponent"] == pytest.approx(2)
