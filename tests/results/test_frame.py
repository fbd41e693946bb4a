import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from bench.api.cell import Cell
from results import frame as frames
from results.row import Record, Row, Status, Unmeasured
from results.statistics import rank
from results.store import Store

CATALOG = {
    "variants": {"bahdanau[width=64]": {"short": "bahdanau"}},
    "tasks": {"copying[length=8]": {"short": "copying"}},
}


def read(*folders: Path) -> pd.DataFrame:
    return frames.rows_of([Store(folder) for folder in folders])


def record(
    variant: str, seed: int, rows: Iterable[Row] = (), status: Status = "ok", **changed: object
) -> Record:
    cell = Cell(
        kind="quality",
        task="copying[length=8]",
        backbone="seq2seq",
        variant=variant,
        slot="cross",
        protocol="adam",
        seed=seed,
    )
    fields: dict[str, object] = {"cell": asdict(cell), "id": cell.id, "environment": "e"}
    detail = "" if status == "ok" else f"{variant} has no cross form."
    return Record(**fields | changed, status=status, detail=detail, rows=tuple(rows))


def scored(accuracy: float, pace: float = 1.0) -> list[Row]:
    curve = [
        Row(metric="accuracy", value=accuracy * at / 3, axis=axis, x=x, split="validation")
        for at in (1, 2, 3)
        for axis, x in (("step", 10.0 * at), ("cpu_s", pace * at))
    ]
    by_length = Row(metric="accuracy", value=0.1, axis="length", x=8.0, split="test")
    final = Row(metric="accuracy", value=accuracy, split="test")
    return [*curve, by_length, final, Row(metric="parameters_count", value=100.0)]


def write(folder: Path, records: Iterable[Record]) -> Path:
    with Store.create(folder) as store:
        for entry in records:
            store.append(entry)
        store.write_json("catalog.json", CATALOG)
    return folder


@pytest.fixture
def run(tmp_path):
    return write(
        tmp_path / "run",
        [
            record("bahdanau[width=64]", 0, scored(0.9)),
            record("bahdanau[width=64]", 1, scored(0.6, pace=3.0)),
            record("dot", 0, scored(0.3)),
            record("dot", 1, scored(0.2)[:2], status="diverged"),
            record("linear", 0, status="refused"),
        ],
    )


def test_the_columns_are_as_documented_with_typed_values(run):
    frame = read(run)
    assert list(frame.columns) == list(frames.COLUMNS)
    numbers = frame.select_dtypes("number").columns
    assert list(numbers) == ["seed", "value", "repeat", "x", "attempt", "seconds"]
    assert not frame.drop(columns=["value", "x"]).isna().any(axis=None)


def test_an_empty_run_has_the_same_columns_and_types(run, tmp_path):
    empty = read(write(tmp_path / "empty", []))
    assert empty.empty
    assert empty.dtypes.equals(read(run).dtypes)
    assert frames.final_values(empty, "accuracy").empty
    assert frames.curve(empty, "accuracy", "step").empty
    assert frames.speed_summary(empty).empty
    assert frames.growth_exponents(empty).empty
    assert frames.missing(empty).empty


def test_names_come_from_the_catalog_or_are_the_selector(run):
    frame = read(run)
    names = dict(zip(frame["variant"], frame["variant_name"], strict=True))
    assert names == {"bahdanau[width=64]": "bahdanau", "dot": "dot", "linear": "linear"}
    assert set(frame["task_name"]) == {"copying"}


def test_a_cell_without_a_result_has_one_line_that_says_why(run):
    frame = read(run)
    refused = frame[frame["status"] == "refused"]
    assert len(refused) == 1
    assert refused["value"].isna().all()
    assert refused["detail"].item() == "linear has no cross form."
    diverged = frame[frame["status"] == "diverged"]
    assert diverged["metric"].tolist() == ["accuracy", "accuracy", ""]


def test_an_ok_cell_without_rows_still_has_a_line(tmp_path):
    frame = read(write(tmp_path / "run", [record("dot", 0)]))
    assert frame["status"].tolist() == ["ok"]
    assert frame["value"].isna().all()


def test_the_newest_attempt_wins_over_several_folders(run, tmp_path):
    again = record("dot", 1, scored(0.5), attempt=2)
    other = write(tmp_path / "other", [again, record("dot", 2, scored(0.4))])
    frame = read(run, other)
    finals = frames.final_values(frame, "accuracy")
    assert frames.scores(finals)["dot"] == {0: 0.3, 1: 0.5, 2: 0.4}
    assert "diverged" not in set(frame["status"])


def test_one_final_value_per_cell_that_ended_well(run):
    frame = read(run)
    finals = frames.final_values(frame, "accuracy")
    assert finals["value"].tolist() == [0.9, 0.6, 0.3]
    assert list(finals.columns) == ["cell", *frames.SETTING, "seed", "value"]
    assert frames.final_values(frame, "parameters_count", split="")["value"].tolist() == [100] * 3
    assert frames.final_values(frame, "accuracy", split="validation").empty


def test_trials_of_a_study_never_mix_with_results(tmp_path):
    trial = record("dot", 0, scored(0.9))
    trial = record("dot", 0, scored(0.9), cell=trial.cell | {"kind": "trial"}, id="0" * 12)
    frame = read(write(tmp_path / "run", [trial]))
    assert frames.final_values(frame, "accuracy").empty
    assert len(frames.final_values(frame, "accuracy", kind="trial")) == 1


def test_scores_go_straight_into_the_ranking(run):
    finals = frames.final_values(read(run), "accuracy")
    table = rank(frames.scores(finals, by="variant_name"), "higher", baseline="bahdanau").lines
    assert [line.variant for line in table] == ["bahdanau", "dot"]


def test_scores_of_mixed_settings_are_refused(run):
    finals = frames.final_values(read(run), "accuracy")
    with pytest.raises(ValueError, match="dot has two values for seed 0"):
        frames.scores(pd.concat([finals, finals.tail(1)]))


def test_a_curve_averages_seeds_at_the_same_step(run):
    curve = frames.curve(read(run), "accuracy", "step")
    bahdanau = curve[curve["variant_name"] == "bahdanau"]
    assert bahdanau["x"].tolist() == [10, 20, 30]
    assert bahdanau["mean"].tolist() == pytest.approx([0.25, 0.5, 0.75])
    assert bahdanau["seeds"].tolist() == [2, 2, 2]
    assert (bahdanau["low"] < bahdanau["mean"]).all()


def test_a_curve_over_cpu_time_averages_the_nth_points(run):
    curve = frames.curve(read(run), "accuracy", "cpu_s")
    bahdanau = curve[curve["variant_name"] == "bahdanau"]
    assert bahdanau["x"].tolist() == pytest.approx([2, 4, 6])
    assert bahdanau["mean"].tolist() == pytest.approx([0.25, 0.5, 0.75])


def validated(values: Iterable[float], pace: float = 1.0, last: float | None = None) -> list[Row]:
    """A validation curve, a point every 10 steps; the clock may end it at the step `last`."""
    steps = [10.0 * at for at, _ in enumerate(values, start=1)]
    if last is not None:
        steps[-1] = last
    points = [(step, pace * step, value) for step, value in zip(steps, values, strict=True)]
    return [
        Row(metric="accuracy", value=value, axis=axis, x=x, split="validation")
        for step, seconds, value in points
        for axis, x in (("step", step), ("cpu_s", seconds))
    ]


@pytest.fixture
def stopped(tmp_path):
    """One seed reaches the threshold at once, one later, and one never learns."""
    return read(
        write(
            tmp_path / "stopped",
            [
                record("dot", 0, validated([0.4, 1.0], pace=3.0)),
                record("dot", 1, validated([0.2, 0.4, 1.0])),
                record("dot", 2, validated([0.2, 0.2, 0.2, 0.2])),
            ],
        )
    )


def test_a_seed_that_stopped_at_its_threshold_stays_in_the_average(stopped):
    curve = frames.curve(stopped, "accuracy", "step")
    assert curve["x"].tolist() == [10, 20, 30, 40]
    assert curve["seeds"].tolist() == [3, 3, 3, 3]
    # of those that go on: 0.27, 0.53, 0.6, 0.2
    assert curve["mean"].tolist() == pytest.approx([0.8 / 3, 1.6 / 3, 2.2 / 3, 2.2 / 3])


def test_over_cpu_time_a_seed_that_stopped_keeps_its_value_and_its_pace(stopped):
    curve = frames.curve(stopped, "accuracy", "cpu_s")
    assert curve["x"].tolist() == pytest.approx([50 / 3, 100 / 3, 50, 200 / 3])
    assert curve["mean"].tolist() == pytest.approx([0.8 / 3, 1.6 / 3, 2.2 / 3, 2.2 / 3])
    assert curve["seeds"].tolist() == [3, 3, 3, 3]


def test_a_seed_that_the_clock_ended_between_two_points_is_no_point_of_its_own(tmp_path):
    runs = [
        record("dot", 0, validated([0.1, 0.3], last=15.0)),
        record("dot", 1, validated([0.5, 0.7, 0.9])),
    ]
    curve = frames.curve(read(write(tmp_path / "ended", runs)), "accuracy", "step")
    assert curve["x"].tolist() == [10, 15, 20, 30]
    assert curve["mean"].tolist() == pytest.approx([0.3, 0.45, 0.5, 0.6])
    assert curve["seeds"].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("axis", ["length", "hops"])
def test_a_part_of_the_test_that_a_seed_did_not_see_is_not_made_up(tmp_path, axis):
    def by_part(values: Iterable[float]) -> list[Row]:
        return [
            Row(metric="accuracy", value=value, axis=axis, x=8.0 * at, split="test")
            for at, value in enumerate(values, start=1)
        ]

    runs = [record("dot", 0, by_part([0.9, 0.8])), record("dot", 1, by_part([0.7]))]
    curve = frames.curve(read(write(tmp_path / "parts", runs)), "accuracy", axis)
    assert curve["seeds"].tolist() == [2, 1]
    assert curve["mean"].tolist() == pytest.approx([0.8, 0.8])


def test_one_seed_has_a_curve_with_an_infinite_interval(run):
    curve = frames.curve(read(run), "accuracy", "length")
    dot = curve[curve["variant"] == "dot"]
    assert dot["mean"].tolist() == [0.1]
    assert dot["high"].tolist() == [math.inf]


def test_missing_lists_each_cell_once_with_its_reason(run):
    holes = frames.missing(read(run))
    assert holes["status"].tolist() == ["diverged", "refused"]
    assert holes["detail"].tolist() == ["dot has no cross form.", "linear has no cross form."]


def test_a_metric_without_a_value_has_a_line_with_its_reason_and_is_no_missing_cell(tmp_path):
    spent = Unmeasured(metric="peak_memory_bytes", status="out_of_memory", detail="64 GiB more.")
    frame = read(write(tmp_path / "run", [record("dot", 0, scored(0.3), unmeasured=(spent,))]))
    (line,) = frame[frame["status"] != "ok"].to_dict("records")
    assert (line["metric"], line["status"], line["detail"]) == tuple(vars(spent).values())
    assert math.isnan(line["value"])
    assert frames.missing(frame).empty
    assert frames.final_values(frame, "accuracy")["value"].tolist() == [0.3]


def test_the_frame_survives_a_damaged_ledger(run):
    whole = read(run)
    [path] = (run / "ledger").glob("*.jsonl")
    path.write_bytes(b"garbage\n" + path.read_bytes() + b'{"id": "torn"')
    pd.testing.assert_frame_equal(read(run), whole)
