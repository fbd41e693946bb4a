from dataclasses import asdict, fields, replace

import pytest

from bench.api.cell import Cell, cell_from_dict, parse_label
from bench.api.errors import InvalidSelector

CELL = Cell(
    kind="quality",
    task="copying[length=24]",
    backbone="seq2seq[encoder=birnn,width=64]",
    variant="bahdanau[score=additive[width=64]]",
    slot="cross",
    protocol="adam[lr=0.003,steps=400]",
    impl="reference",
    dtype="float32",
    device="cpu",
    seed=3,
    revisions="copying:1 seq2seq:1 bahdanau:1",
)


def test_the_id_of_a_cell_never_changes_between_versions():
    """If this fails, old results no longer match new plans: raise SCHEMA only on purpose."""
    assert CELL.id == "533d1f343179"


@pytest.mark.parametrize("name", [registered.name for registered in fields(Cell)])
def test_every_field_of_a_cell_matters(name):
    other = {"kind": "speed", "seed": 4}.get(name, "other")
    assert replace(CELL, **{name: other}).id != CELL.id


def test_the_id_has_twelve_hex_digits_and_survives_storage():
    assert int(CELL.id, 16) < 16**12
    assert len(CELL.id) == 12
    assert cell_from_dict(asdict(CELL)).id == CELL.id


@pytest.mark.parametrize("cell", [CELL, replace(CELL, kind="speed", revisions="")])
def test_a_printed_label_reads_back_as_the_same_cell(cell):
    assert parse_label(cell.label) == cell


@pytest.mark.parametrize("label", ["", "quality copying", CELL.label.replace("quality", "taste")])
def test_a_damaged_label_is_refused_with_advice(label):
    with pytest.raises(InvalidSelector, match=r"bench plan|known: quality"):
        parse_label(label)


def test_a_stored_cell_of_a_newer_bench_is_refused():
    with pytest.raises(InvalidSelector, match=r"unknown fields \['color'\]"):
        cell_from_dict(asdict(CELL) | {"color": "red"})
