"""The demo: weights beside the gold alignment, a table of five mechanisms, and a report."""

import json
from dataclasses import asdict, replace

import pytest

from bench.api.cell import cell_from_dict
from bench.cli import demo_text
from bench.cli.demo import MECHANISMS
from reports.folder import read_folder
from results.store import Store

SMALL = ["demo", "--seeds", "1", "--training", "adam[evaluate_every=5,steps=10]"]


def test_weights_are_shown_in_tenths():
    assert [demo_text._digit(weight) for weight in (0.0, 0.049, 0.06, 0.5, 0.95, 1.0)] == [
        ".",
        ".",
        "1",
        "5",
        "9",
        "9",
    ]


def test_grids_stand_side_by_side_under_their_names():
    grids = {"gold": [[1.0, 0.0], [0.0, 1.0]], "additive": [[0.7, 0.3], [0.1, 0.9]]}
    assert demo_text._side_by_side(grids, ["a", "</s>"], ["B", "</s>"]) == [
        "   gold      additive",
        "   a $       a $",
        "B  9 .       7 3",
        "$  . 9       1 9",
    ]


@pytest.mark.slow
def test_the_demo_prints_weights_a_table_and_the_report_and_goes_on_where_it_stopped(
    bench, tmp_path
):
    folder = tmp_path / "run"
    said = bench(*SMALL, "--out", folder, BENCH_DATA_DIR="", HF_HUB_OFFLINE="1")
    assert said.returncode == 0, said.stderr
    assert "[5/5] ok" in said.stderr
    lines = said.stdout.splitlines()
    (heads,) = [line for line in lines if line.split()[:1] == ["gold"]]
    assert heads.split() == ["gold", "additive", "dot", "raffel_monotonic", "tu_coverage"]
    for name in MECHANISMS.split(","):
        (row,) = [line for line in lines if line.startswith(f"{name} ")]
        assert len(row.split()) == 4
    assert f"report: {folder / 'report.html'}" in said.stdout
    assert (folder / "report.html").is_file()
    again = bench(*SMALL, "--out", folder, "--json")
    found = json.loads(again.stdout)
    assert (found["counts"], found["already_finished"]) == ({}, 5)
    assert read_folder(folder).catalog.preset == "demo"
    with Store(folder) as store:
        for record in store.records():
            other = replace(cell_from_dict(dict(record.cell)), seed=9)
            store.append(replace(record, id=other.id, cell=asdict(other)))
    beside = bench(*SMALL, "--out", folder)
    table = said.stdout[said.stdout.index("mechanism") :].partition("\ncells:")[0]
    assert table in beside.stdout, "cells of other runs are not of the demo"
