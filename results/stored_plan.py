"""What `plan.json` says: the cells that were planned, and those that were not, with the reason."""

from collections.abc import Iterable
from typing import NotRequired, TypedDict

from bench.api.cell import parse_label
from bench.api.errors import InvalidSelector
from results.json_values import Json, JsonObject, as_list, as_number, as_object, as_text

PLAN = "plan.json"
_BESIDE_THE_PLAN = (
    "cells",
    "keep_models",
    "most_seeds",
    "plugin",
    "probes",
    "until",
    "verify",
)
"""What earlier versions stored with what was asked, and what decides no planned cell."""


class Budget(TypedDict):
    """How many processes a plan was made for (ADR 4)."""

    asked: dict[str, Json]
    """What decides which cells are planned, but for the processes."""
    jobs: int


class StoredPlan(TypedDict):
    """What a run was to hold."""

    cells: dict[str, str]
    """Labels by the id of the cell: a cell may be printed in another way, and is the same."""
    left_out: list[dict[str, str]]
    """`label`, `reason` and `command` of each."""
    budgets: NotRequired[list[Budget]]
    """One of each distinct question; missing where no question has one."""


def plan_with(held: Json, now: StoredPlan) -> StoredPlan:
    """A plan, and what plans of other commands in the same folder hold besides.

    What one of them planned is not left out because this one left it out.
    """
    before = stored_plan(as_object(held))
    older = {id_: one for id_, one in before["cells"].items() if id_ not in now["cells"]}
    # a look may add what the budget had left out
    there = {*before["cells"], *_covered(before["cells"].values()), *now["cells"]}
    left = [one for one in now["left_out"] if _id_of(one) not in there]
    planned = {*now["cells"], *map(_id_of, now["left_out"]), *_covered(now["cells"].values())}
    others = (one for one in before["left_out"] if _id_of(one) not in planned)
    plan = StoredPlan(cells={**now["cells"], **older}, left_out=[*left, *others])
    return _with_budgets(plan, now, before)


def merged_plans(ours: Json, theirs: Json) -> StoredPlan:
    """The plans of two runs: what one planned is not left out because the other left it out."""
    one, two = stored_plan(as_object(ours)), stored_plan(as_object(theirs))
    cells = {**one["cells"], **two["cells"], **one["cells"]}  # in this order, labelled by ours
    left = {_id_of(found): found for found in (*two["left_out"], *one["left_out"])}
    there = {*cells, *_covered(cells.values())}
    plan = StoredPlan(cells=cells, left_out=[left[id_] for id_ in left if id_ not in there])
    return _with_budgets(plan, one, two)


def _with_budgets(plan: StoredPlan, *said: StoredPlan) -> StoredPlan:
    """A plan with the budgets of others; of one question, that of the first that has it."""
    budgets: list[Budget] = []
    for budget in (budget for one in said for budget in one.get("budgets", ())):
        if all(budget["asked"] != other["asked"] for other in budgets):
            budgets.append(budget)
    return {**plan, "budgets": budgets} if budgets else plan


def stored_plan(data: JsonObject) -> StoredPlan:
    """Read `plan.json`; a part that is missing is empty."""
    left_out = (as_object(one) for one in as_list(data.get("left_out")))
    plan = StoredPlan(
        cells=_cells(data.get("cells")),
        left_out=[{key: as_text(value) for key, value in one.items()} for one in left_out],
    )
    budgets = _budgets(data)
    return {**plan, "budgets": budgets} if budgets else plan


def plan_to_json(plan: StoredPlan) -> dict[str, Json]:
    """The content of `plan.json`."""
    left_out: list[Json] = [dict(one) for one in plan["left_out"]]
    found: dict[str, Json] = {"cells": dict(plan["cells"]), "left_out": left_out}
    if "budgets" in plan:
        found["budgets"] = [{"asked": one["asked"], "jobs": one["jobs"]} for one in plan["budgets"]]
    return found


def _budgets(data: JsonObject) -> list[Budget]:
    """The budgets, and the only one that earlier versions stored, that of the last command."""
    stored = [as_object(one) for one in as_list(data.get("budgets"))]
    last = as_object(data.get("asked"))
    if not last.get("cells"):
        asked = {key: value for key, value in last.items() if key not in _BESIDE_THE_PLAN}
        stored.append({"asked": {"command": "run", **asked}, "jobs": data.get("jobs")})
    return [
        Budget(asked=dict(as_object(one.get("asked"))), jobs=int(jobs))
        for one in stored
        if (jobs := as_number(one.get("jobs")) or 0) >= 1
    ]


def _cells(stored: Json) -> dict[str, str]:
    """Labels by id; earlier versions stored a list of labels."""
    if isinstance(stored, list):
        return {_id_from(label): label for label in map(as_text, stored)}
    return {id_: as_text(label) for id_, label in as_object(stored).items()}


def _covered(labels: Iterable[str]) -> set[str]:
    """Labels of what a plan may have left out and some cells are part of: `training on recall`."""
    found = set()
    for label in labels:
        try:
            cell = parse_label(label)
        except InvalidSelector:
            continue
        tasks, variants = ({text, text.partition("[")[0]} for text in (cell.task, cell.variant))
        if cell.kind == "speed":
            found |= {f"speed of {variant}" for variant in variants}
        else:
            found |= {f"training on {task}" for task in tasks}
            found |= {f"training of {variant}" for variant in variants}
    return found


def _id_of(left_out: dict[str, str]) -> str:
    return _id_from(left_out.get("label", ""))


def _id_from(label: str) -> str:
    """Id of a cell; what no cell prints, as `training of dot`, is itself."""
    try:
        return parse_label(label).id
    except InvalidSelector:
        return label
