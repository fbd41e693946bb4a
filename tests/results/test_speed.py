import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace

import pytest

from bench.api.cell import Cell, cell_from_dict
from results import frame as frames
from results.row import Record, Row
from results.store import Store

WIGGLE = (0.999, 1.001, 1.0005, 0.9995, 1.0)


def speed_record(length: int, rows: Iterable[Row], variant: str = "new", seed: int = 0) -> Record:
    cell = Cell(
        kind="speed",
        task=f"attend[batch=4,length={length}]",
        backbone="none",
        variant=variant,
        slot="cross",
        protocol="rounds[count=5]",
        seed=seed,
    )
    return Record(cell=asdict(cell), id=cell.id, status="ok", environment="e", rows=tuple(rows))


def rounds(length: int, metric: str, times: Iterable[float], baseline: str = "") -> list[Row]:
    at = {"axis": "length", "x": float(length), "baseline": baseline}
    return [
        Row(metric=metric, value=time, repeat=repeat, **at) for repeat, time in enumerate(times)
    ]


def timed(length: int, ratio: float, load: Callable[[int], float] = lambda _: 1.0) -> list[Row]:
    """Five rounds; the load of the machine hits all visits of a round alike."""
    machine = [length * load(repeat) for repeat in range(5)]
    aa_control = [time * wiggle for time, wiggle in zip(machine, WIGGLE, strict=True)]
    own = [ratio * time * wiggle for time, wiggle in zip(machine, reversed(WIGGLE), strict=True)]
    return [
        *rounds(length, "forward_time_ms", own),
        *rounds(length, "forward_time_ms", machine, "reference"),
        *rounds(length, "forward_time_ms", aa_control, "aa_control"),
        Row(metric="peak_memory_bytes", value=length**2, axis="length", x=float(length)),
    ]


@pytest.fixture
def load(tmp_path):
    def write_and_load(*records: Record):
        with Store.create(tmp_path / "run") as store:
            for entry in records:
                store.append(entry)
        return frames.rows_of([Store(tmp_path / "run")])

    return write_and_load


def only(table, metric="forward_time_ms"):
    [line] = table[table["metric"] == metric].to_dict("records")
    return line


def test_the_ratio_is_taken_within_rounds_so_that_load_cancels(load):
    frame = load(speed_record(64, timed(64, 0.5, load=lambda repeat: 1.0 + repeat)))
    line = only(frames.speed_summary(frame))
    assert line["ratio"] == pytest.approx(0.5, rel=1e-3)
    assert 0.49 < line["ratio_low"] < line["ratio"] < line["ratio_high"] < 0.51
    assert line["median"] == pytest.approx(96, rel=1e-2)
    assert line["q10"] < line["median"] < line["q90"]
    assert (line["rounds"], line["processes"]) == (5, 1)
    assert line["aa_half_width"] == pytest.approx(0.001, rel=0.1)
    assert line["verdict"] == "FAST"


def test_the_reference_and_its_double_are_no_lines_of_their_own(load):
    summary = frames.speed_summary(load(speed_record(64, timed(64, 2.0))))
    assert sorted(summary["metric"]) == ["forward_time_ms", "peak_memory_bytes"]
    assert only(summary)["verdict"] == "SLOW"


def test_a_metric_without_a_reference_has_no_ratio_and_no_verdict(load):
    line = only(frames.speed_summary(load(speed_record(64, timed(64, 1.0)))), "peak_memory_bytes")
    assert line["median"] == 64**2
    assert math.isnan(line["ratio"])
    assert (line["ratio_low"], line["ratio_high"]) == (0, math.inf)
    assert line["verdict"] == ""


def test_without_a_control_no_speed_is_claimed(load):
    rows = [row for row in timed(64, 0.5) if row.baseline != "aa_control"]
    line = only(frames.speed_summary(load(speed_record(64, rows))))
    assert line["aa_half_width"] == math.inf
    assert line["verdict"] == "AMBIGUOUS"


@pytest.mark.parametrize("off", [1.02, 0.98])
def test_a_control_that_is_off_on_one_side_counts_with_its_farther_end(load, off):
    rows = [row for row in timed(64, 0.97) if row.baseline != "aa_control"]
    rows += rounds(64, "forward_time_ms", [64 * off * wiggle for wiggle in WIGGLE], "aa_control")
    line = only(frames.speed_summary(load(speed_record(64, rows))))
    assert line["aa_half_width"] == pytest.approx(0.021, abs=1e-3)
    assert line["verdict"] == "AMBIGUOUS"


def test_several_processes_are_the_unit_and_not_their_rounds(load):
    ratios = (0.49, 0.5, 0.51)
    frame = load(*(speed_record(64, timed(64, r), seed=s) for s, r in enumerate(ratios)))
    line = only(frames.speed_summary(frame))
    assert (line["rounds"], line["processes"]) == (15, 3)
    assert line["ratio"] == pytest.approx(0.5, rel=1e-3)
    assert line["ratio_high"] - line["ratio_low"] > 0.04


def test_one_round_bounds_nothing(load):
    rows = [row for row in timed(64, 0.5) if row.repeat == 0]
    line = only(frames.speed_summary(load(speed_record(64, rows))))
    assert line["ratio_high"] == math.inf
    assert line["verdict"] == "AMBIGUOUS"


def test_growth_is_fitted_over_the_lengths_of_one_shape(load):
    frame = load(*(speed_record(length, timed(length, 1.0)) for length in (64, 128, 256, 512)))
    growth = frames.growth_exponents(frame).set_index("metric")
    assert growth.loc["forward_time_ms", "exponent"] == pytest.approx(1.0, abs=0.01)
    assert growth.loc["peak_memory_bytes", "exponent"] == pytest.approx(2.0)
    assert growth.loc["forward_time_ms", "lengths"] == 4
    assert growth.loc["forward_time_ms", "shape"] == "attend[batch=4]"
    assert growth.loc["forward_time_ms", "low"] < 1.0 < growth.loc["forward_time_ms", "high"] + 0.01


def test_two_lengths_give_a_slope_and_one_gives_none(load):
    frame = load(*(speed_record(length, timed(length, 1.0)) for length in (64, 128)))
    growth = frames.growth_exponents(frame).set_index("metric").loc["forward_time_ms"]
    assert growth["exponent"] == pytest.approx(1.0, abs=0.01)
    assert growth["low"] < 1.0 < growth["high"]
    assert (growth["lengths"], growth["line"]) == (2, "not told")
    one = frames.growth_exponents(frame[frame["x"] == 64]).set_index("metric")
    assert one["exponent"].isna().all()
    assert (one["high"] == math.inf).all()


def test_what_is_counted_has_an_exponent_without_an_interval(load):
    frame = load(*(speed_record(length, timed(length, 1.0)) for length in (64, 128, 256)))
    growth = frames.growth_exponents(frame).set_index("metric").loc["peak_memory_bytes"]
    assert growth["exponent"] == pytest.approx(2.0)
    assert (growth["high"], growth["line"]) == (math.inf, "straight")


def test_growth_beside_the_baseline_is_that_of_the_variant_alone_whatever_the_machine_does(load):
    slow = {64: 1.0, 128: 1.4, 256: 1.0}
    frame = load(
        *(
            speed_record(length, timed(length, length, lambda _, at=length: slow[at]))
            for length in slow
        )
    )
    growth = frames.growth_exponents(frame).set_index("metric").loc["forward_time_ms"]
    assert growth["beside"] == pytest.approx(1.0, abs=0.01)
    assert growth["beside_low"] < 1.0 < growth["beside_high"]
    # the same drift of the machine looks like growth of the time
    assert growth["pieces"] == pytest.approx((2 + math.log2(1.4), 2 - math.log2(1.4)), abs=0.01)
    assert growth["line"] == "not straight"


def test_the_baseline_must_be_timed_at_every_length(load):
    records = [speed_record(length, timed(length, 1.0)) for length in (64, 128, 256)]
    alone = [row for row in records[1].rows if not row.baseline]
    frame = load(records[0], replace(records[1], rows=tuple(alone)), records[2])
    growth = frames.growth_exponents(frame).set_index("metric").loc["forward_time_ms"]
    assert math.isfinite(growth["exponent"])
    assert math.isnan(growth["beside"])


def beside(record, baseline):
    cell = replace(cell_from_dict(record.cell), protocol=f"rounds[beside={baseline},count=5]")
    return replace(record, cell=asdict(cell), id=cell.id)


def test_ratios_are_to_the_baseline_of_the_run_and_never_to_another_one(load):
    plain = speed_record(64, timed(64, 2.0))
    frame = load(plain, beside(plain, "dot[position=alibi]"))
    for baseline, protocol in (
        ("scaled_dot", "rounds[count=5]"),
        ("dot[position=alibi]", "rounds[beside=dot[position=alibi],count=5]"),
    ):
        lines = frames.speed_summary(frame, baseline).query("metric == 'forward_time_ms'")
        ratios = dict(zip(lines["protocol"], lines["ratio"], strict=True))
        assert len(ratios) == 2
        assert [name for name, ratio in ratios.items() if math.isfinite(ratio)] == [protocol]
        (other,) = lines[lines["protocol"] != protocol].to_dict("records")
        assert (other["median"], other["verdict"]) == (plain_median(frame), "")


def plain_median(frame):
    return only(frames.speed_summary(frame).query("protocol == 'rounds[count=5]'"))["median"]
