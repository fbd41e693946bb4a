"""All that is given against the best of less."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import BASE, catalog, quality_cell, record
from synthetic_run import write_run

from reports.folder import read_folder
from reports.render import render
from reports.sections.input_ablation import ablated_tables
from results.row import Row

TASK = "pairs[read=both,shuffle=false]"
LESS = {
    "pairs[read=first,shuffle=false]": (0.5, 0.7),
    "pairs[read=second,shuffle=false]": (0.6, 0.6),
    "pairs[read=both,shuffle=true]": (0.4, 0.4),
}
"""Test and validation means; validation and test disagree about which is best."""


def cells(task: str, name: str, test: float, validation: float, **network: str) -> list[Any]:
    return [
        record(
            replace(quality_cell(task, name, seed), **network),
            "ok",
            [
                Row(metric="token_accuracy", value=test + 0.01 * seed, split="test"),
                Row(metric="token_accuracy", value=validation, split="validation"),
            ],
        )
        for seed in range(3)
    ]


def run_of(folder: Path, records: list[Any]) -> Path:
    """A run whose tasks are all and less of one whole."""
    tasks = {
        task: {"short": task, "primary": "token_accuracy", "family": "pairs", "whole": TASK}
        for task in (TASK, *LESS)
    }
    named = {**catalog(), "tasks": tasks}
    return write_run(folder, records=records, catalog_data=named, tasks=tasks)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    records = [*cells(TASK, BASE, 0.8, 0.8), *cells(TASK, "scaled_dot", 0.55, 0.5)]
    for task, (test, validation) in LESS.items():
        records += cells(task, "scaled_dot", test, validation)
    return run_of(tmp_path / "run", records)


def test_the_reference_is_the_best_of_less_by_validation(run: Path) -> None:
    (table,) = ablated_tables(read_folder(run).comparisons)
    lines = [tuple(entry.text for entry in row[1:]) for row in table.rows]
    assert lines == [
        ("everything", "bahdanau", "0.810 ± 0.025", "+0.300"),
        ("read=second", "scaled_dot", "0.610 ± 0.025", "+0.100"),
        ("everything", "scaled_dot", "0.560 ± 0.025", "+0.0500"),
        ("read=first", "scaled_dot", "0.510 ± 0.025", "reference"),
        ("shuffle=true", "scaled_dot", "0.410 ± 0.025", "-0.100"),
    ]
    assert "All that is given against the best of less" in render(run).details.read_text("utf-8")


def test_every_network_has_a_reference_of_its_own(tmp_path: Path) -> None:
    records = cells(TASK, BASE, 0.8, 0.8)
    for task, (test, validation) in LESS.items():
        records += cells(task, BASE, test, validation)
        records += cells(task, BASE, 0.9, 0.9, backbone="rnn_seq2seq")
    records += cells(TASK, BASE, 0.95, 0.95, backbone="rnn_seq2seq")
    (table,) = ablated_tables(read_folder(run_of(tmp_path / "run", records)).comparisons)
    lines = [[entry.text for entry in row] for row in table.rows]
    gains = {line[0]: line[-1] for line in lines if line[1] == "everything"}
    assert gains == {"rnn_seq2seq": "+0.0500", "seq2seq": "+0.300"}
    assert [line[0] for line in lines if line[-1] == "reference"] == ["rnn_seq2seq", "seq2seq"]


def test_without_a_comparison_with_less_there_is_no_table(run: Path) -> None:
    found = [one for one in read_folder(run).comparisons if one.task == TASK]
    assert list(ablated_tables(found)) == []
