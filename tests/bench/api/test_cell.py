from dataclasses import asdict, fields, replace

import pytest

from bench.api.cell import Cell, cell_from_dict, parse_label
from bench.api.errors import InvalidConfig, InvalidSelector

CELL = Cell(
    kind="quality",
    task="copying[length=24]",
    backbone="seq2seq[encoder=birnn,width=64]",
    variant="bahdanau[score=additive[width=64]]",
    slot="cross",
    protocol="adam[lr=0.003,steps=400]",
    impl="reference",
    seed=3,
    revisions="bahdanau:2 copying:4",
)
PLAIN = Cell(
    kind="quality",
    task="copying",
    backbone="seq2seq",
    variant="bahdanau",
    slot="cross",
    protocol="adam",
)


def test_the_id_of_a_cell_never_changes_between_versions():
    """If this fails, old results no longer match new plans: raise SCHEMA only on purpose."""
    assert CELL.id == "66c5307d94fc"
    assert PLAIN.id == "304ce1506f8c"


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_would_draw_what_another_one_draws_is_refused(seed):
    assert replace(PLAIN, seed=2**32 - 1).id != PLAIN.id
    with pytest.raises(InvalidConfig, match=f"a seed is from 0 to 4294967295, got {seed}"):
        replace(PLAIN, seed=seed)


@pytest.mark.parametrize("name", [registered.name for registered in fields(Cell)])
def test_every_field_of_a_cell_matters(name):
    other = {"kind": "speed", "seed": 4}.get(name, "other")
    assert replace(CELL, **{name: other}).id != CELL.id
    assert replace(PLAIN, **{name: other}).id != PLAIN.id


def test_the_id_has_twelve_hex_digits_and_survives_storage():
    assert int(CELL.id, 16) < 16**12
    assert len(CELL.id) == 12
    assert cell_from_dict(asdict(CELL)).id == CELL.id


@pytest.mark.parametrize(
    "cell",
    [CELL, PLAIN, replace(CELL, kind="speed", revisions="")]
    + [replace(PLAIN, **{name: "x[y=1]"}) for name in ("impl", "dtype", "device", "revisions")],
)
def test_a_printed_label_reads_back_as_the_same_cell(cell):
    assert parse_label(cell.label) == cell
    assert parse_label(cell.label).id == cell.id


def test_a_label_prints_only_what_differs_from_the_defaults():
    assert PLAIN.label == "quality copying @ seq2seq @ bahdanau / cross / adam"
    assert replace(PLAIN, seed=2, dtype="float64").label.endswith("/ adam / dtype=float64 / seed=2")


@pytest.mark.parametrize(
    "label",
    [
        "",
        "quality copying",
        CELL.label.replace("quality", "taste"),
        f"{PLAIN.label} / float32",
        f"{PLAIN.label} / color=red",
        f"{PLAIN.label} / kind=speed",
        f"{PLAIN.label} / seed=one",
    ],
)
def test_a_damaged_label_is_refused_with_advice(label):
    with pytest.raises(InvalidSelector, match=r"bench plan|known: quality"):
        parse_label(label)


def test_a_stored_cell_of_a_newer_bench_is_refused():
    with pytest.raises(InvalidSelector, match=r"unknown fields \['color'\]"):
        cell_from_dict(asdict(CELL) | {"color": "red"})
