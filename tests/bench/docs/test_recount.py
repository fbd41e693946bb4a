"""Counts of a pack that follow from its cells alone."""

from dataclasses import asdict

from bench.api.cell import Cell
from bench.docs.recount import BY_FORMULA, count_again
from bench.running.plan import plan
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.network_size import forward_flops
from bench.training.quality import NETWORK_FLOPS
from results.pack import Pack, write_pack
from results.row import Record, Row
from results.store import Store

TRAINED = (
    Row(metric="accuracy", value=0.5, split="test"),
    Row(metric=NETWORK_FLOPS, value=7.0),
    Row(metric="parameters_count", value=7.0),
    Row(metric="slot_parameters_count", value=7.0),
)
AT = {"axis": "length", "x": 16.0}
TIMED = (Row(metric=BY_FORMULA, value=7.0, **AT), Row(metric="forward_time_ms", value=2.0, **AT))


def record(cell, rows):
    return Record(
        cell=asdict(cell), id=cell.id, rows=rows, status="ok", environment="abc", attempt=1
    )


def timed(variant):
    return Cell(
        kind="speed",
        task="attend[batch=2,heads=2,length=16,width=32]",
        backbone="none",
        variant=variant,
        slot="causal",
        protocol="rounds",
        seed=0,
    )


def test_counts_are_made_again_and_all_else_stays(tmp_path):
    asked = {"tasks": "transduction", "preset": "smoke", "speed": False}
    cell = plan(Request(variants="scaled_dot", **asked)).quality[0].cell
    with Store.create(tmp_path / "run") as store:
        store.append(record(cell, TRAINED))
        store.append(record(timed("scaled_dot"), TIMED))
        store.append(record(timed("tupe"), TIMED))
        store.write_json("environments/abc.json", {"id": "abc"})
    before = Pack(write_pack(store, tmp_path / "run.parquet"))
    told: list[str] = []
    assert count_again(before.folder, told.append)
    assert len(told) == 3
    after = Pack(before.folder).ledger().newest()
    built = assemble(cell, None)
    (score, flops, parameters, inside) = after[cell.id].rows
    assert score == TRAINED[0]
    assert flops.value == forward_flops(built.system, built.task, cell)
    assert parameters.value == sum(one.numel() for one in built.system.parameters())
    (slot,) = built.system.there.variant_slots()
    assert inside.value == sum(one.numel() for one in slot.parameters())
    formula, seconds = after[timed("scaled_dot").id].rows
    assert (formula.value, seconds) == (2 * 2 * 2 * 16 * 16 * 32, TIMED[1])
    assert after[timed("tupe").id].rows == TIMED[1:]
    told.clear()
    assert not count_again(before.folder, told.append)
    assert told == []
