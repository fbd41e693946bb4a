"""The cells of some tasks, read, packed and merged like a run of their own."""

from dataclasses import asdict

import pytest

from bench.api.cell import Cell
from bench.api.errors import UnknownName
from results.merge import merge
from results.pack import Pack, write_pack
from results.part import Part
from results.row import Record, Row
from results.store import Store

COPYING, RECALL = "copying[length=8]", "recall"
BUDGETS = [{"asked": {"command": "run", "minutes": 3.0}, "jobs": 2}]


def cell(task, variant, *, kind="quality"):
    return Cell(
        kind=kind, task=task, backbone="none", variant=variant, slot="cross", protocol="adam"
    )


def record(task, variant, *, kind="quality", environment="one", score=0.5, **more):
    asked = cell(task, variant, kind=kind)
    rows = (Row(metric="accuracy", value=score, split="test"),)
    facts = {"status": "ok", "environment": environment, "attempt": 1, "seconds": 1.0, **more}
    return Record(cell=asdict(asked), id=asked.id, rows=rows, **facts)


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "run") as store:
        store.append(record(COPYING, "dot", score=0.25))
        store.append(record(COPYING, "dot", attempt=2, finished="2026-01-01T00:00:00+00:00"))
        store.append(record(RECALL, "additive", environment="two"))
        store.append(record("cross[b=1]", "dot", kind="speed"))
    variants = {name: {"short": name} for name in ("dot", "additive", "uniform")}
    store.write_json(
        "catalog.json",
        {"baseline": "uniform", "variants": variants, "tasks": {COPYING: {}, RECALL: {}}},
    )
    left_out = [
        {"label": cell(task, "general").label, "reason": "time"} for task in (COPYING, RECALL)
    ]
    store.write_json(
        "plan.json",
        {
            "budgets": BUDGETS,
            "cells": [cell(COPYING, "concat").label, cell(RECALL, "concat").label, "unreadable"],
            "left_out": left_out,
        },
    )
    for name in ("one", "two"):
        store.write_json(f"environments/{name}.json", {"id": name})
    return store


def test_a_part_holds_what_is_said_of_its_tasks_and_nothing_of_others(store):
    part = Part(store, ["copying"])
    (kept,) = part.records()
    assert (kept.cell["task"], kept.attempt) == (COPYING, 2)
    assert part.environments() == {"one": {"id": "one"}}
    catalog, plan = part.read_json("catalog.json"), part.read_json("plan.json")
    assert [*catalog["variants"]] == ["dot", "uniform"], "the baseline stays"
    assert [*catalog["tasks"]] == [COPYING]
    concat = cell(COPYING, "concat")
    assert plan["cells"] == {concat.id: concat.label}
    assert [one["label"] for one in plan["left_out"]] == [cell(COPYING, "general").label]
    assert plan["budgets"] == BUDGETS, "a run that goes on from the part has them"
    assert part.read_json("spec.json") is None


def test_a_task_that_the_run_does_not_have_is_named_with_those_it_has(store):
    with pytest.raises(UnknownName, match="copying"):
        Part(store, ["copyin"])
    with pytest.raises(UnknownName):
        Part(store, ["cross"])  # a shape of timings


def test_a_new_task_is_added_to_a_pack_and_leaves_its_other_cells_as_they_are(store, tmp_path):
    """A run that kept cells of other code says so of them; the pack they came from does not."""
    published = write_pack(Part(store, ["recall"]), tmp_path / "published.parquet")
    before = Pack(published).ledger().newest()
    kept = {"status": "other_code", "detail": "its code has changed", "attempt": 2}
    store.append(record(RECALL, "additive", environment="two", **kept))
    added = write_pack(Part(store, ["copying"]), tmp_path / "added.parquet")
    merge(tmp_path / "both", [published, added])
    found = Store(tmp_path / "both").ledger().newest()
    assert {id_: found[id_] for id_ in before} == before
    assert len(found) == 2
