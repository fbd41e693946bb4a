"""What was equal in a comparison: sizes, training, and settings that were tried."""

from dataclasses import replace
from pathlib import Path

from synthetic import BASE, LENGTHS, catalog, quality_cell, record, speed_cell
from synthetic_run import write_run

from bench.api.calibration import competitor
from reports.blocks import Paragraph, TableBlock
from reports.folder import read_folder
from reports.sections.parity import parity_section
from results.row import Record, Row

TASK = "recall[pairs=8]"
SIZES = {BASE: 1000, "scaled_dot": 1015, "luong_general": 1500}
NOTHING: dict[str, int] = {}
"""Of a task that nobody has calibrated."""
FLOPS = {BASE: 200, "scaled_dot": 100}


def trained(name: str, count: int, seed: int) -> Record:
    rows = [
        Row(metric="loss_nats", value=0.5 + 0.01 * seed, split="test"),
        Row(metric="parameters_count", value=float(count)),
    ]
    if name != "luong_general":  # a network of a run that stored none
        rows.append(Row(metric="network_forward_flops_count", value=2.0 * count))
    cell = quality_cell(TASK, name, seed)
    if name == "luong_general":
        cell = replace(cell, protocol="adam[steps=7]")
    return record(cell, "ok", rows)


def timed(name: str, count: int) -> Record:
    cell = speed_cell(name, LENGTHS[-1])
    rows = [Row(metric="forward_flops_counted_count", value=float(count), axis="length", x=512.0)]
    return record(cell, "ok", rows)


def tried(name: str, lr: str) -> Record:
    cell = replace(quality_cell(TASK, name, 0), kind="trial", protocol=f"adam[lr={lr}]")
    return record(cell, "ok", [Row(metric="loss_nats", value=0.5, split="validation")])


def section(
    folder: Path, *more: Record, tuned: dict[str, int] | None = NOTHING
) -> tuple[str, TableBlock]:
    records = [trained(name, count, seed) for name, count in SIZES.items() for seed in (0, 1)]
    records += [timed(name, count) for name, count in FLOPS.items()]
    known = catalog()
    known["tasks"][TASK]["tuned"] = tuned  # type: ignore[index]  # a plain dictionary
    run = write_run(folder, records=[*records, *more], catalog_data=known)
    found = parity_section(read_folder(run))
    assert found is not None
    _, told, table = found.blocks
    assert isinstance(told, Paragraph)
    assert isinstance(table, TableBlock)
    return told.text, table


def test_sizes_stand_beside_those_of_the_baseline(tmp_path: Path) -> None:
    told, table = section(tmp_path / "run")
    lines = [tuple(entry.text for entry in row) for row in table.rows]
    dash = "\N{EM DASH}"
    assert lines == [
        ("bahdanau", "1.00 k", "±0 %", "±0 %", "±0 %", "the same", "0"),
        ("luong_general", "1.50 k", "+50 %", dash, dash, "adam[steps=7]", "0"),
        ("scaled_dot", "1.01 k", "+1.5 %", "+1.5 %", "-50 %", "the same", "0"),
    ]
    assert "within 2%, and in 1 its FLOPs." in told
    assert told.startswith("In 0 of 1 comparison of the baseline with another variant, all ")
    assert told.endswith("In no comparison was a variant tuned with more trials than another.")


def test_trials_of_a_study_are_counted_whatever_their_seeds(tmp_path: Path) -> None:
    more = [tried("scaled_dot", "0.1"), tried("scaled_dot", "0.2")]
    told, table = section(tmp_path / "run", *more)
    assert [row[-1].text for row in table.rows] == ["0", "0", "2"]
    assert told.endswith("Numbers of trials differ in 1 comparison.")


def place_of(name: str) -> str:
    cell = quality_cell(TASK, name, 0)
    return competitor(name, cell.backbone, cell.slot)


def test_learning_rates_of_calibration_are_trials_too(tmp_path: Path) -> None:
    tuned = {place_of(BASE): 3, place_of("scaled_dot"): 3}
    told, table = section(tmp_path / "run", tuned=tuned)
    assert [row[-1].text for row in table.rows] == ["3", "0", "3"]
    assert "calibration tried 3 learning rates of each variant but 1, which have that of" in told
    assert told.endswith("Numbers of trials differ in 1 comparison.")


def test_a_run_that_stored_nothing_of_calibration_claims_no_equal_tuning(tmp_path: Path) -> None:
    told, table = section(tmp_path / "run", tuned=None)
    assert {row[-1].text for row in table.rows} == {"not stored"}
    assert "is not stored in this run" in told
    assert "In no comparison" not in told


def test_flops_are_compared_on_the_seeds_of_both(tmp_path: Path) -> None:
    # the first batch of a seed has lengths of its own, and so FLOPs of its own
    def flops(name: str, seed: int, count: float) -> Record:
        rows = [
            Row(metric="loss_nats", value=0.5 + 0.01 * seed, split="test"),
            Row(metric="network_forward_flops_count", value=count),
        ]
        return record(quality_cell(TASK, name, seed), "ok", rows)

    by_seed = {0: 300.0, 1: 100.0, 2: 700.0}
    records = [flops(BASE, seed, count) for seed, count in by_seed.items()]
    records += [flops("scaled_dot", seed, 1.5 * by_seed[seed]) for seed in (0, 1)]
    known = catalog()
    known["tasks"][TASK]["tuned"] = NOTHING  # type: ignore[index]  # a plain dictionary
    found = parity_section(
        read_folder(write_run(tmp_path / "run", records=records, catalog_data=known))
    )
    assert found is not None
    table = found.blocks[-1]
    assert isinstance(table, TableBlock)
    assert [row[3].text for row in table.rows] == ["±0 %", "+50 %"]
