"""What `plan.json` says: the cells that were planned, and those that were not, with the reason."""

from collections.abc import Iterable
from typing import TypedDict

from bench.api.cell import parse_label
from bench.api.errors import InvalidSelector
from results.json_values import Json, JsonObject, as_list, as_object, as_text

PLAN = "plan.json"


class StoredPlan(TypedDict):
    """What a run was to hold."""

    cells: dict[str, str]
    """Labels by the id of the cell: a cell may be printed in another way, and is the same."""
    left_out: list[dict[str, str]]
    """`label`, `reason` and `command` of each."""


def plan_with(held: Json, now: StoredPlan) -> StoredPlan:
    """A plan, and what plans of other commands in the same folder hold besides."""
    before = stored_plan(as_object(held))
    planned = {*now["cells"], *map(_id_of, now["left_out"]), *_covered(now["cells"].values())}
    others = (one for one in before["left_out"] if _id_of(one) not in planned)
    cells = {id_: label for id_, label in before["cells"].items() if id_ not in planned}
    return StoredPlan(cells={**now["cells"], **cells}, left_out=[*now["left_out"], *others])


def merged_plans(ours: Json, theirs: Json) -> StoredPlan:
    """The plans of two runs: what one planned is not left out because the other left it out."""
    one, two = stored_plan(as_object(ours)), stored_plan(as_object(theirs))
    cells = {**one["cells"], **two["cells"], **one["cells"]}  # in this order, labelled by ours
    left = {_id_of(found): found for found in (*two["left_out"], *one["left_out"])}
    there = {*cells, *_covered(cells.values())}
    return StoredPlan(cells=cells, left_out=[left[id_] for id_ in left if id_ not in there])


def stored_plan(data: JsonObject) -> StoredPlan:
    """Read `plan.json`; a part that is missing is empty."""
    left_out = (as_object(one) for one in as_list(data.get("left_out")))
    return StoredPlan(
        cells=_cells(data.get("cells")),
        left_out=[{key: as_text(value) for key, value in one.items()} for one in left_out],
    )


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
