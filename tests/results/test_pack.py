"""A published run as one file: nothing of its rows changes, and what is no pack is refused."""

from dataclasses import asdict, replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import results
from bench.api.cell import Cell
from bench.api.errors import DataDamaged
from results import pack as packs
from results.frame import COLUMNS
from results.ledger import OtherSchema
from results.pack import Pack, open_run, write_pack
from results.row import RECORD_SCHEMA, Record, Row, Unmeasured
from results.run_path import NotARunFolder
from results.store import Store

PLAN = {"cells": ["quality x @ y @ z / cross / adam"], "left_out": []}
SPENT = Unmeasured(metric="loss_nats", status="out_of_memory", detail="64 GiB were not there")
MACHINE = {"id": "abc", "cpu": "Some CPU", "threads": 1}


def record(variant, seed, rows=(), **more):
    cell = Cell(
        kind="quality",
        task="copying[length=8]",
        backbone="none",
        variant=variant,
        slot="cross",
        protocol="adam",
        seed=seed,
    )
    facts = {"status": "ok", "environment": "abc", "attempt": 2, "seconds": 0.1 + seed, **more}
    return Record(cell=asdict(cell), id=cell.id, rows=tuple(rows), **facts)


@pytest.fixture
def store(tmp_path):
    curve = [
        Row(metric="loss_nats", value=0.1 + step / 3, axis="step", x=step, split="validation")
        for step in (1.0, 2.0)
    ]
    final = Row(metric="accuracy", value=1 / 3, split="test")
    other = Row(metric="accuracy", value=0.25, split="test", baseline="naive Bayes, counted")
    with Store.create(tmp_path / "run") as store:
        store.append(record("dot", 1, [*curve, final, other]))
        store.append(record("dot", 0, [final], finished="2026-01-01T00:00:00+00:00"))
        store.append(record("additive", 0, curve, status="diverged", detail="loss is not finite"))
        store.append(record("mocha", 0, status="refused", detail="it looks ahead"))
        store.append(record("general", 0, [final], unmeasured=(SPENT,)))
        store.append(record("dot", 1, [final], attempt=1))
    store.write_json("plan.json", PLAN)
    store.write_json("catalog.json", {"variants": {"dot": {"short": "dot product"}}})
    store.write_json("environments/abc.json", MACHINE)
    return store


def test_a_pack_holds_the_newest_record_of_every_cell_unchanged(store, tmp_path):
    pack = Pack(write_pack(store, tmp_path / "packs" / "run.parquet"))
    assert pack.ledger().newest() == store.ledger().newest()
    assert pack.environments() == {"abc": MACHINE}
    assert pack.read_json("plan.json") == PLAN
    assert pack.read_json("spec.json") is None
    assert pack.read_artifact(pack.records()[0].id) is None


def test_a_folder_and_its_pack_load_as_the_same_typed_table(store, tmp_path):
    path = write_pack(store, tmp_path / "run.parquet")
    from_folder, from_pack = results.load(store.folder), results.load(path)
    assert (from_folder.name, from_pack.name) == ("run", "run")
    assert list(from_pack.rows) == list(COLUMNS)

    def sorted_rows(run):
        return run.rows.sort_values("cell", kind="stable", ignore_index=True)

    pd.testing.assert_frame_equal(sorted_rows(from_folder), sorted_rows(from_pack))
    assert (
        from_pack.rows["variant_name"].isin(["dot product", "additive", "mocha", "general"]).all()
    )
    assert from_pack.rows["processor"].unique().tolist() == ["Some CPU"]
    assert from_pack.plan == PLAN
    assert len(from_pack.cells) == from_pack.cells["cell"].nunique() == 5
    assert "value" not in from_pack.cells


def test_pandas_alone_reads_the_rows(store, tmp_path):
    path = write_pack(store, tmp_path / "run.parquet")
    alone = pd.read_parquet(path)
    assert list(alone) == list(COLUMNS)
    assert alone["value"].dtype == "float64"
    assert alone["seed"].dtype == "int64"
    assert alone["baseline"].tolist().count("naive Bayes, counted") == 1


def test_a_run_is_packed_to_the_same_bytes_again_and_from_its_pack(store, tmp_path):
    one = write_pack(store, tmp_path / "one.parquet")
    two = write_pack(open_run(one), tmp_path / "two.parquet")
    assert one.read_bytes() == two.read_bytes()


def test_a_pack_names_no_place_and_no_password_of_the_machine(store, tmp_path):
    study = {"command": "study", "tuning": {"storage": "postgresql://me:SECRET@h/db", "trials": 8}}
    files = {"plugin": ["/home/me/mine.py"]}
    asked = {"command": "run", **files, "earlier": [{**study, **files}]}
    commands = [
        "python -m bench study --storage postgresql://me:SECRET@h/db --plugin /home/me/mine.py",
        "python -m bench study --storage=postgresql://me:SECRET@h/db --spec /home/me/spec.json",
        "python -m bench run --reuse /home/me/quick.parquet --out /home/me/first",
    ]
    left = {"label": "speed of dot", "reason": "no time", "command": commands[0]}
    store.write_json("spec.json", asked)
    store.write_json("plan.json", {"asked": asked, "jobs": 2, "cells": {}, "left_out": [left]})
    store.write_json(
        "catalog.json",
        {"commands": commands, "plugins": ["/home/me/mine.py"], "data_dir": "/home/me/data"},
    )
    pack = Pack(write_pack(store, tmp_path / "run.parquet"))
    found = {name: pack.read_json(name) for name in ("spec.json", "plan.json", "catalog.json")}
    for name, said in found.items():
        assert "SECRET" not in str(said), name
        assert "/home/me" not in str(said), name
    tuning = {"storage": "", "trials": 8}
    plugin = {"plugin": ["mine.py"]}
    earlier = [{"command": "study", "tuning": tuning, **plugin}]
    assert found["spec.json"] == {"command": "run", **plugin, "earlier": earlier}
    assert found["catalog.json"]["commands"][1:] == [
        "python -m bench study --storage=STORAGE --spec spec.json",
        "python -m bench run --reuse quick.parquet --out runs/first",
    ]


def test_no_sentence_of_a_pack_names_a_folder_of_the_machine(store, tmp_path):
    lost = replace(SPENT, detail="no space in /home/me/cache")
    told = "words is not here (/home/me/data has no folder words)"
    store.append(record("cosine", 0, status="refused", detail=told))
    store.append(record("cosine", 1, [Row(metric="accuracy", value=0.5)], unmeasured=(lost,)))
    red = {"failed": {"oracle": "OSError: /home/me/x is full"}, "skipped": {"long": "~/me is."}}
    store.write_json("certificates.json", {"dot": {"passed": ["shapes"], **red}})
    pack = Pack(write_pack(store, tmp_path / "run.parquet"))
    details = {r.detail for r in pack.records()} | {
        one.detail for r in pack.records() for one in r.unmeasured
    }
    assert "words is not here (… has no folder words)" in details
    assert "no space in …" in details
    certificate = pack.read_json("certificates.json")["dot"]
    assert certificate["failed"] == {"oracle": "OSError: … is full"}
    assert certificate["skipped"] == {"long": "… is."}
    assert certificate["passed"] == ["shapes"]
    assert not [said for said in details if "/home" in said]


def test_an_interrupt_leaves_the_pack_that_was_there(store, tmp_path, monkeypatch):
    path = write_pack(store, tmp_path / "run.parquet")
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pq.ParquetWriter, "add_key_value_metadata", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_pack(store, path)
    assert path.read_bytes() == before
    assert [*tmp_path.glob("*.tmp")] == []


def test_what_is_no_pack_is_refused_with_advice(store, tmp_path, monkeypatch):
    with pytest.raises(NotARunFolder, match=r"no pack at .*gone\.parquet"):
        open_run(tmp_path / "gone.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(NotARunFolder, match="no pack of a run; give a file"):
        open_run(tmp_path / "other.parquet")
    with pytest.raises(NotARunFolder, match=r"ends in \.parquet"):
        write_pack(store, tmp_path / "run.csv")
    (tmp_path / "text.parquet").write_text("PAR1 and more")
    path = write_pack(store, tmp_path / "run.parquet")
    (tmp_path / "cut.parquet").write_bytes(path.read_bytes()[:-100])
    (tmp_path / "hollow.parquet").write_bytes(b"PAR1" * 9)
    for name in ("text", "cut", "hollow"):
        with pytest.raises(NotARunFolder, match=rf"{name}\.parquet is damaged or no pack; take a"):
            open_run(tmp_path / f"{name}.parquet")
    monkeypatch.setattr(packs, "RECORD_SCHEMA", RECORD_SCHEMA + 1)
    with pytest.raises(OtherSchema, match="written with record schema 2"):
        open_run(path)


def test_a_pack_that_is_damaged_inside_is_refused_without_words_of_arrow(store, tmp_path):
    path = write_pack(store, tmp_path / "run.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(DataDamaged) as error:
        open_run(path).records()
    assert str(error.value) == f"{path} is damaged; take a whole copy of the pack."


WEIGHTS = [[0.25, 0.75], [1.0, 0.0]]
NOTES = {"data": "some file 0123"}


def put_artifacts(store, *, redistributable):
    terms = {"license": {"name": "terms", "redistributable": redistributable}}
    store.write_json("catalog.json", {"tasks": {"copying[length=8]": terms}})
    for one in store.records():
        maps = [{"title": f"example {n}", "weights": WEIGHTS} for n in range(4)]
        large = {"title": "large", "weights": [[0.0] * 100] * 100}
        store.write_artifact(
            one.id, {"attention": [large, *maps], "samples": [{"source": "a"}], "notes": NOTES}
        )


def test_maps_and_samples_of_the_lowest_seed_go_into_a_pack(store, tmp_path):
    put_artifacts(store, redistributable=True)
    pack = Pack(write_pack(store, tmp_path / "run.parquet"))
    found = {one.cell["seed"]: pack.read_artifact(one.id) for one in pack.records()
             if (one.cell["variant"], one.status) == ("dot", "ok")}  # fmt: skip
    assert found[1] is None
    assert [one["title"] for one in found[0]["attention"]] == ["example 0", "example 1"]
    assert found[0]["attention"][0]["weights"] == WEIGHTS
    assert found[0]["samples"] == [{"source": "a"}]
    again = Pack(write_pack(pack, tmp_path / "again.parquet"))
    assert [again.read_artifact(r.id) for r in again.records()] == [
        pack.read_artifact(r.id) for r in pack.records()
    ]


def test_of_data_without_an_open_license_only_notes_go_into_a_pack(store, tmp_path):
    put_artifacts(store, redistributable=False)
    for name in ("closed", "unknown"):
        pack = Pack(write_pack(store, tmp_path / f"{name}.parquet"))
        found = [pack.read_artifact(one.id) for one in pack.records()]
        assert [one for one in found if one] == [{"notes": NOTES}] * 2, "dot and general"
        store.write_json("catalog.json", {})
