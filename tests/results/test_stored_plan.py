"""Plans of several commands and versions go by the ids of their cells."""

from bench.api.cell import Cell
from results.stored_plan import StoredPlan, merged_plans, plan_to_json, plan_with, stored_plan


def cell(variant):
    asked = {"task": "copying", "backbone": "rnn_seq2seq", "slot": "cross", "protocol": "adam"}
    return Cell(kind="quality", variant=variant, **asked)


def left(label):
    return {"label": label, "reason": "no time", "command": "run"}


DOT, GENERAL, CONCAT = map(cell, ("dot", "general", "concat"))


def test_a_plan_of_labels_alone_is_read_as_one_with_ids():
    found = stored_plan({"cells": [DOT.label, "as a later version prints it"]})
    assert found["cells"] == {
        DOT.id: DOT.label,
        "as a later version prints it": "as a later version prints it",
    }
    assert stored_plan({"cells": found["cells"]}) == found


def test_a_cell_that_is_printed_in_another_way_is_planned_once():
    now = StoredPlan(cells={DOT.id: "as it is printed now"}, left_out=[])
    held = {"cells": [DOT.label, GENERAL.label], "left_out": [left(CONCAT.label)]}
    found = plan_with(held, now)
    assert found["cells"] == {DOT.id: "as it is printed now", GENERAL.id: GENERAL.label}
    assert found["left_out"] == [left(CONCAT.label)]


def test_what_another_command_planned_is_not_left_out_because_a_smaller_plan_left_it_out():
    """Whether it has run yet or not."""
    parts = [left(CONCAT.label), left("training of dot"), left("speed of dot")]
    now = StoredPlan(cells={GENERAL.id: GENERAL.label}, left_out=[left(DOT.label), *parts])
    held = {"cells": {DOT.id: DOT.label, GENERAL.id: "as before"}, "left_out": []}
    found = plan_with(held, now)
    assert found["cells"] == {GENERAL.id: GENERAL.label, DOT.id: DOT.label}
    assert found["left_out"] == [left(CONCAT.label), left("speed of dot")]
    assert plan_with(plan_to_json(found), now) == found


def test_what_a_look_adds_is_not_left_out_by_the_budget():
    now = StoredPlan(cells={DOT.id: DOT.label}, left_out=[left(DOT.label), left(CONCAT.label)])
    assert plan_with(None, now)["left_out"] == [left(CONCAT.label)]


def test_what_was_left_out_as_a_whole_is_told_no_more_once_it_is_planned():
    """Data that were not there were fetched, or there is more time now."""
    told = ["training on copying", "training of dot", "speed of dot", "training on recall"]
    held = {"cells": {}, "left_out": [left(label) for label in told]}
    now = StoredPlan(cells={DOT.id: DOT.label}, left_out=[])
    assert plan_with(held, now)["left_out"] == [left("speed of dot"), left("training on recall")]
    assert merged_plans(held, dict(now))["left_out"] == plan_with(held, now)["left_out"]


def test_merged_plans_keep_the_order_and_the_labels_of_the_first():
    ours = {"cells": {DOT.id: "ours"}, "left_out": [left(GENERAL.label), left("training of dot")]}
    theirs = {"cells": [GENERAL.label, DOT.label], "left_out": []}
    found = merged_plans(ours, theirs)
    assert [*found["cells"].items()] == [(DOT.id, "ours"), (GENERAL.id, GENERAL.label)]
    assert found["left_out"] == [left("training of dot")]


def budget(jobs, **asked):
    return {"asked": {"command": "run", **asked}, "jobs": jobs}


def test_every_question_keeps_its_budget_once():
    held = {"budgets": [budget(2, minutes=1.0), budget(3, minutes=2.0)]}
    now = StoredPlan(cells={}, left_out=[], budgets=[budget(2, minutes=3.0)])
    found = plan_with(held, now)
    assert found["budgets"] == [budget(2, minutes=3.0), *held["budgets"]]
    assert plan_with(plan_to_json(found), now) == found
    assert stored_plan(plan_to_json(found)) == found
    both = merged_plans(held, {"budgets": [budget(8, minutes=2.0), budget(8, minutes=4.0)]})
    assert both["budgets"] == [*held["budgets"], budget(8, minutes=4.0)]


def test_the_one_budget_of_an_earlier_version_is_read():
    asked = {"minutes": 1.0, "verify": True, "cells": [], "plugin": ["a.py"], "probes": ""}
    assert stored_plan({"asked": asked, "jobs": 2})["budgets"] == [budget(2, minutes=1.0)]
    for none in (
        {"asked": asked},
        {"asked": asked, "jobs": 0},
        {"asked": {**asked, "cells": ["one"]}, "jobs": 2},
        {"budgets": [{"asked": asked, "jobs": "two"}, "no budget"]},
    ):
        assert "budgets" not in stored_plan(none), none
